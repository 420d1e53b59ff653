"""Spectrograms changed at random: voices, rooms and microphones that nobody has recorded."""

import math

import torch

from regard.algebra.shapes import Float, Int, Tensor

WARP = 0.15  # of the frequency axis, at most: the length of a vocal tract (Jaitly and Hinton 2013)
TILT = 0.5  # spread of each wave that is added over the frequencies: a microphone, a room
WAVES = 3
FLOOR = 1.5  # at most, above the faintest number of a clip: noise, in which faint sounds are lost
BANDS, GAP = 8, 8  # filters and frames that a mask hides, at most (SpecAugment, Park et al. 2019)
MASKS = 2  # of each kind

Frames = Float[Tensor, "clip frame filter"]


def augment(frames: Frames, lengths: Int[Tensor, " clip"], amount: float) -> Frames:
    """Return padded clips as other voices and microphones would give them; `amount` scales all changes, 0 is none."""
    if not amount:
        return frames
    inside = torch.arange(frames.shape[1], device=frames.device)[:, None] < lengths[:, None, None].to(frames.device)
    changed = raise_floor(add_tilt(warp_frequencies(frames, amount), amount), inside, amount)
    gaps = draw_masks(frames.shape[:2], GAP * amount)[:, :, None]
    kept = (gaps & draw_masks(frames.shape[::2], BANDS * amount)[:, None]).to(frames.device)
    return torch.where(inside & kept, changed, 0.0)


def warp_frequencies(frames: Frames, amount: float) -> Frames:
    """Return each clip with its frequencies multiplied by a number of its own."""
    last = frames.shape[-1] - 1
    factor = 1 + WARP * amount * (2 * torch.rand(len(frames), 1, 1) - 1)
    place = (torch.arange(last + 1) * factor).clamp(max=last).to(frames.device).expand(frames.shape)
    low = place.floor().long()
    upper = frames.gather(-1, (low + 1).clamp(max=last))
    return torch.lerp(frames.gather(-1, low), upper, (place - low).to(frames.dtype))


def add_tilt(frames: Frames, amount: float) -> Frames:
    """Return each clip with a few slow waves over its frequencies added, the same in all of its frames."""
    filters = frames.shape[-1]
    angles = torch.arange(1, WAVES + 1)[:, None] * (torch.arange(filters) + 0.5) * (math.pi / filters)
    waves = TILT * amount * torch.randn(len(frames), WAVES) @ angles.cos()
    return frames + waves[:, None].to(frames)


def raise_floor(frames: Frames, inside: Tensor, amount: float) -> Frames:
    """Return each clip with its faintest numbers raised to a floor of its own."""
    faintest = frames.masked_fill(~inside, math.inf).amin((1, 2), keepdim=True)
    return frames.maximum(faintest + FLOOR * amount * torch.rand(len(frames), 1, 1).to(frames))


def draw_masks(shape: torch.Size, widest: float) -> Tensor:
    """Return a table of what is kept of each clip's axis: all but a few gaps of random places and widths."""
    clips, size = shape
    place, kept = torch.arange(size), torch.ones(clips, size, dtype=torch.bool)
    for _ in range(MASKS):
        start, width = torch.rand(clips, 1) * size, torch.rand(clips, 1) * widest
        kept &= ~((place >= start) & (place < start + width))
    return kept
