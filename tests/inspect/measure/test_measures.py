"""Measures in closed form: attention of a known shape has known numbers."""

import math

import pytest
import torch

from regard import InputError, Recording
from regard.inspect.measure import (
    PATTERNS,
    agreement,
    alignment_error,
    extract_alignment,
    find_patterns,
    mean_distance,
    normalized_entropy,
    parse_pharaoh,
    received_share,
    rollout,
    score_patterns,
)
from regard.inspect.recording import DenseMap, Sketch
from tests.inspect.recording.made import make_factored, sketch_weights, weights

N = 7


def build_shifted(by: int) -> torch.Tensor:
    """Return weights by which every query attends `by` positions away, or nowhere if there is none."""
    return torch.diag_embed(torch.ones(N - abs(by)), offset=by)


def test_entropy_of_halves_is_one_bit_of_all() -> None:
    table = torch.zeros(1, 3, 8)
    table[..., :2] = 0.5
    torch.testing.assert_close(normalized_entropy(DenseMap(table)), torch.tensor([1 / 3]))
    assert normalized_entropy(DenseMap(torch.ones(1, 2, 1))).item() == 0
    rounded = Sketch(torch.full((1, 2), 1e-7), torch.ones(1, 1), torch.ones(1, 2, 1), torch.zeros(1, 2, 1).int())
    assert normalized_entropy(rounded).item() == 0


def test_distance_is_counted_from_the_place_of_the_query() -> None:
    assert mean_distance(DenseMap(torch.eye(N)[None])).item() == 0
    back = torch.zeros(2, 3, N)
    back[0, :, 0] = 1.0  # queries at 4, 5, 6 look at 0
    back[1, :, 6] = 1.0
    torch.testing.assert_close(mean_distance(DenseMap(back)), torch.tensor([5.0, 1.0]))
    uniform = DenseMap(torch.full((1, N, N), 1 / N))
    torch.testing.assert_close(mean_distance(uniform), torch.tensor([(N * N - 1) / (3 * N)]))


def test_shares_sum_to_one_and_empty_ones_to_none() -> None:
    table = torch.zeros(1, 2, 4)
    table[0, 0, 1] = 1.0
    assert received_share(DenseMap(table)).tolist() == [[0, 1, 0, 0]]
    assert received_share(DenseMap(torch.zeros(1, 2, 4))).sum() == 0


def test_agreement_is_one_less_the_divergence() -> None:
    half = torch.tensor([[0.5, 0.5]])
    one = torch.tensor([[1.0, 0.0]])
    found = agreement(DenseMap(torch.stack([one, half])))
    divergence = (0.75 * math.log2(1 / 0.75) + 0.25 * math.log2(1 / 0.25)) - 0.5
    torch.testing.assert_close(found, torch.tensor([[1, 1 - divergence], [1 - divergence, 1]]))


@pytest.mark.parametrize("rows", [2**20, 1], ids=["at once", "in blocks"])
def test_measures_of_factors_are_those_of_the_weights(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inspect.measure.heads.BLOCK_WEIGHTS", rows)
    seen = make_factored()
    whole = DenseMap(seen.dense())
    for measure in (mean_distance, agreement, score_patterns, normalized_entropy, received_share):
        torch.testing.assert_close(measure(seen), measure(whole))


def test_rollout_is_the_product_of_halves() -> None:
    first, second = weights()[:, :, :5].softmax(-1), weights(1)[:, :, :5].softmax(-1)
    found = rollout([DenseMap(first), DenseMap(second)])
    eye = torch.eye(5)
    torch.testing.assert_close(found, (eye + second.mean(0)) / 2 @ ((eye + first.mean(0)) / 2))
    torch.testing.assert_close(found.sum(-1), torch.ones(5))
    alone = rollout(Recording.from_weights({"a": first}), residual=0.0)
    torch.testing.assert_close(alone, first.mean(0))


def test_rollout_needs_one_stack() -> None:
    with pytest.raises(InputError, match=r"^layers: got 5 × 7 in layer 0, expected 7 × 7 in all; fix: choose"):
        rollout([DenseMap(weights())])
    with pytest.raises(InputError, match=r"^layers: got none, expected at least one"):
        rollout([])
    with pytest.raises(InputError, match=r"^residual: got 2.0, expected 0 … 1"):
        rollout([DenseMap(weights())], residual=2.0)


def test_alignments_are_the_largest_weights_or_all_above_a_threshold() -> None:
    table = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.0, 0.0], [0.1, 0.2, 0.7]])
    assert extract_alignment(table) == {(0, 0), (2, 2)}
    assert extract_alignment(table, threshold=0.4) == {(0, 0), (0, 1), (2, 2)}
    seen = DenseMap(torch.stack([table, table.flip(-1)]))
    assert extract_alignment(seen, head=1) == {(0, 2), (2, 0)}
    assert extract_alignment(seen) == extract_alignment(seen.tile())
    with pytest.raises(InputError, match=r"^threshold: got 0.0, expected above 0, at most 1"):
        extract_alignment(table, threshold=0.0)


def test_the_alignment_error_is_that_of_och_and_ney() -> None:
    found = frozenset({(0, 0), (1, 1), (2, 3)})
    sure, possible = frozenset({(0, 0), (2, 2)}), frozenset({(1, 1), (1, 2)})
    errors = alignment_error(found, sure, possible)
    assert errors == (2 / 3, 1 / 2, 1 - (1 + 2) / (3 + 2))
    assert alignment_error(sure, sure) == (1.0, 1.0, 0.0)
    assert alignment_error(frozenset(), frozenset()).rate == 0.0
    assert alignment_error(frozenset(), sure).rate == 1.0


def test_pharaoh_lines_have_the_source_first() -> None:
    assert parse_pharaoh(" 0-0 3-1 ") == {(0, 0), (1, 3)}
    with pytest.raises(InputError, match=r"^links: got '3:1', expected two numbers and a dash, as 0-1; fix: "):
        parse_pharaoh("3:1")


SHAPES = {
    "previous": build_shifted(-1),
    "next": build_shifted(1),
    "first": torch.eye(N)[:1].expand(N, N),
    "diagonal": torch.eye(N),
    "uniform": torch.full((N, N), 1 / N),
    "other": build_shifted(3) + build_shifted(-4),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_pattern_is_told_by_its_shape(name: str) -> None:
    [found] = find_patterns(DenseMap(SHAPES[name][None].contiguous()))
    assert found.label == name
    assert name == "other" or found.score == pytest.approx(1.0)


def test_patterns_know_where_a_query_of_a_step_sits() -> None:
    step = torch.zeros(1, 1, N)
    step[..., -2] = 1.0
    assert find_patterns(DenseMap(step))[0].label == "previous"
    assert len(PATTERNS) == score_patterns(DenseMap(step)).shape[-1]


def test_single_weights_are_needed_for_patterns() -> None:
    with pytest.raises(InputError, match=r"^tile: got an attention kept as statistics"):
        find_patterns(sketch_weights(weights()))
