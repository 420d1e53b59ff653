"""Spectrograms changed at random: padding stays silent, nothing is changed without being asked, clips differ."""

import pytest
import torch

from regard.tasks.speech.augmentation import BANDS, MASKS, augment, draw_masks, warp_frequencies

LENGTHS = torch.tensor([60, 25])


def draw_frames() -> torch.Tensor:
    frames = torch.randn(2, 60, 40, generator=torch.Generator().manual_seed(1))
    frames[1, 25:] = 0.0
    return frames


def test_no_augmentation_changes_nothing_and_draws_no_number() -> None:
    state, frames = torch.get_rng_state(), draw_frames()
    assert augment(frames, LENGTHS, 0.0) is frames
    assert torch.equal(state, torch.get_rng_state())


def test_padding_stays_zero_and_most_of_a_clip_is_kept() -> None:
    torch.manual_seed(3)
    changed = augment(draw_frames(), LENGTHS, 1.0)
    assert bool((changed[1, 25:] == 0).all())
    assert float((changed[0] == 0).float().mean()) < 0.6
    assert not torch.equal(changed, draw_frames())


def test_equal_clips_become_different_voices_of_equal_length() -> None:
    torch.manual_seed(3)
    first, second = augment(draw_frames()[:1].expand(2, -1, -1), torch.tensor([60, 60]), 1.0)
    assert first.shape == second.shape == (60, 40)
    assert float((first - second).abs().mean()) > 0.1


def test_a_tone_moves_along_the_frequencies_and_keeps_its_strength() -> None:
    torch.manual_seed(5)
    tone = torch.zeros(64, 1, 40)
    tone[:, :, 19:22] = 1.0
    warped = warp_frequencies(tone, 1.0)
    peaks = warped[:, 0].argmax(-1)
    assert int(peaks.min()) < 19 < 22 < int(peaks.max()) + 1
    assert float(warped.amax(-1).min()) > 0.9


@pytest.mark.parametrize("amount", [0.5, 1.0])
def test_masks_are_few_and_narrow(amount: float) -> None:
    torch.manual_seed(7)
    kept = draw_masks(torch.Size((500, 40)), BANDS * amount)
    hidden = (~kept).sum(-1)
    assert int(hidden.max()) <= MASKS * (BANDS * amount + 1)
    assert int(hidden.max()) > 0
    assert bool((hidden == 0).any())
