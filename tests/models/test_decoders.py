"""Every decoder: all steps at once are one step after another, and padding and order change nothing."""

from typing import Any

import torch
from small_models import LENGTHS, B, S, T, V, draw_sources, draw_targets, encode_sources
from torch import Tensor

from regard.models import Decoder, EncoderDecoder, EncoderOutput, select
from regard.models.interface import TeacherForcingOutput


def decode_stepwise(decoder: Decoder[Any], tokens: Tensor, encoded: EncoderOutput) -> tuple[Tensor, Tensor | None]:
    """Compute the definition: begin, then one step after another."""
    state, logits, weights = decoder.begin(encoded), [], []
    for token in tokens.unbind(1):
        step = decoder.step(token, state)
        state = step.state
        logits.append(step.logits)
        weights.append(None if step.weights is None else step.weights.dense())
    looked = [row for row in weights if row is not None]
    return torch.stack(logits, 1), torch.stack(looked, 1) if looked else None


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


def test_teacher_forcing_is_stepping(model: EncoderDecoder[Any]) -> None:
    encoded, tokens = encode_sources(model), draw_targets()
    logits, weights = decode_stepwise(model.decoder, tokens, encoded)
    assert logits.shape == (B, T, V)
    close(model.decoder(tokens, encoded), logits)
    taught = model.decoder.teacher_force(tokens, encoded)
    assert (taught.weights is None) == (weights is None)
    if taught.weights is not None and weights is not None:
        assert weights.shape == (B, T, S)
        close(taught.weights.dense(), weights)


def test_teacher_forcing_is_stepping_without_gradients(model: EncoderDecoder[Any]) -> None:
    """Then caches grow in place."""
    encoded, tokens = encode_sources(model), draw_targets()
    with torch.no_grad():
        close(model.decoder(tokens, encoded), decode_stepwise(model.decoder, tokens, encoded)[0])


def test_the_scan_is_the_definition(model: EncoderDecoder[Any]) -> None:
    encoded, tokens = encode_sources(model), draw_targets()
    scanned: TeacherForcingOutput = Decoder.teacher_force(model.decoder, tokens, encoded)
    close(model.decoder.teacher_force(tokens, encoded).vectors, scanned.vectors)


def test_no_weight_falls_on_padding(model: EncoderDecoder[Any]) -> None:
    weights = model.decoder.teacher_force(draw_targets(), encode_sources(model)).weights
    if weights is not None:
        padded = torch.arange(S) >= LENGTHS[:, None]
        assert not weights.dense()[padded[:, None].expand(B, T, S)].any()


def test_padding_changes_nothing(model: EncoderDecoder[Any]) -> None:
    encoded, tokens = encode_sources(model), draw_targets()
    noisy = torch.where(torch.arange(S) < LENGTHS[:, None], draw_sources(), 1 + (draw_sources() % 5))
    close(model(noisy, LENGTHS, tokens), model.decoder(tokens, encoded))
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(draw_sources()[row : row + 1, :length], LENGTHS[row : row + 1], tokens[row : row + 1])
        close(alone[0], model.decoder(tokens, encoded)[row])


def test_no_step_sees_a_later_token(model: EncoderDecoder[Any]) -> None:
    encoded, tokens = encode_sources(model), draw_targets()
    later = tokens.clone()
    later[:, 3:] = (later[:, 3:] + 1) % V
    close(model.decoder(tokens, encoded)[:, :3], model.decoder(later, encoded)[:, :3])


def test_the_order_of_a_batch_changes_nothing(model: EncoderDecoder[Any]) -> None:
    order, tokens = torch.tensor([2, 0, 1]), draw_targets()
    whole = model(draw_sources(), LENGTHS, tokens)
    close(model(draw_sources()[order], LENGTHS[order], tokens[order]), whole[order])


def test_selected_hypotheses_go_on_as_if_alone(model: EncoderDecoder[Any]) -> None:
    """Rows are copied, reordered, dropped and brought together as beam search does; each keeps its own past."""
    encoded, decoder = encode_sources(model), model.decoder
    generator = torch.Generator().manual_seed(11)
    moves = [
        torch.arange(B).repeat_interleave(3),  # every sentence branches
        torch.tensor([2, 0, 0, 3, 5, 4, 8, 8, 8]),  # within the sentences
        torch.tensor([0, 1, 2, 6, 7, 8]),  # a sentence is finished
        torch.tensor([1, 0, 2, 5, 3, 3]),
        torch.tensor([5, 0, 3, 3]),  # and now anything
        torch.tensor([3, 0, 1, 2, 0]),
    ]
    with torch.no_grad():
        state, history, owner = decoder.begin(encoded), torch.zeros(B, 0, dtype=torch.long), torch.arange(B)
        for move in moves:
            state, history, owner = select(state, move), history[move], owner[move]
            token = torch.randint(V, (len(move),), generator=generator)
            step = decoder.step(token, state)
            state, history = step.state, torch.cat([history, token[:, None]], 1)
            expected = decoder(history, EncoderOutput(*(None if part is None else part[owner] for part in encoded)))
            close(step.logits, expected[:, -1])


def test_a_state_can_be_gone_on_from_twice(model: EncoderDecoder[Any]) -> None:
    """States are values: a second continuation sees nothing of the first."""
    encoded, tokens, decoder = encode_sources(model), draw_targets(), model.decoder
    with torch.no_grad():
        before = decoder.step(tokens[:, 0], decoder.begin(encoded)).state
        first = decoder.step(tokens[:, 1], before)
        other = decoder.step(tokens[:, 2], before)
        decoder.step(tokens[:, 3], other.state)
        again = decoder.step(tokens[:, 3], first.state)
    close(again.logits, decoder(tokens[:, [0, 1, 3]], encoded)[:, -1])


def test_an_empty_source_gives_finite_scores(model: EncoderDecoder[Any]) -> None:
    lengths = torch.tensor([7, 0, 5])
    logits = model(draw_sources(), lengths, draw_targets())
    assert logits.isfinite().all()
    close(logits[0], model(draw_sources(), LENGTHS, draw_targets())[0])


def test_every_parameter_learns(name: str, model: EncoderDecoder[Any]) -> None:
    """But the keys that Luong's location score does not look at."""
    model.train()
    target = torch.cat([draw_targets(), draw_targets()[:, :1]], 1)
    model.loss(draw_sources(), LENGTHS, target, torch.tensor([T + 1, 3, 4]), smoothing=0.1).total.backward()
    idle = [part for part, parameter in model.named_parameters() if parameter.grad is None]
    assert not [part for part in idle if not (name == "transformer-location" and ".key." in part)], idle
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


def test_lengths_change_nothing_but_what_is_behind_them(model: EncoderDecoder[Any]) -> None:
    """Sentences that have ended are left out of later steps; gradients flow as if they were not."""
    encoded, tokens, lengths = encode_sources(model), draw_targets(), torch.arange(1, B + 1)
    real = torch.arange(T) < lengths[:, None]
    whole, short = (model.decoder.teacher_force(tokens, encoded, given) for given in (None, lengths))
    close(short.vectors[real], whole.vectors[real])
    if whole.weights is not None and short.weights is not None:
        close(short.weights.dense()[real], whole.weights.dense()[real])
    learned = [part for part in model.decoder.parameters() if part.requires_grad]
    wanted, found = (
        torch.autograd.grad(taught.vectors[real].square().sum(), learned, allow_unused=True, retain_graph=True)
        for taught in (whole, short)
    )
    for left, right in zip(wanted, found, strict=True):
        assert (left is None) == (right is None)
        if left is not None and right is not None:
            close(right, left)
