"""Bahdanau's additive score and Luong's concat."""

import math
import re

import pytest
import torch

from regard import Additive, Concat, InputError, Score, attend


def fill(score: Score, **values: list[float] | list[list[float]]) -> None:
    for name, numbers in values.items():
        score.get_parameter(name).data = torch.tensor(numbers)


def test_additive_is_a_weighted_sum_of_tanh() -> None:
    score = Additive.projected(2)
    fill(score, weight=[2.0, -1.0])
    query, key = torch.tensor([[0.5, 1.0]]), torch.tensor([[0.5, 0.0], [-0.5, -1.0]])
    first = 2 * math.tanh(1.0) - math.tanh(1.0)
    assert torch.allclose(score(query, key), torch.tensor([[first, 0.0]]))


def test_additive_projects_two_widths_to_one() -> None:
    """One hidden unit that adds up the query and takes away the key."""
    score = Additive(3, 2, 1)
    fill(score, weight=[1.0])
    fill(score, **{"query.weight": [[1.0, 1.0, 1.0]], "key.weight": [[-1.0, -1.0]]})
    found = score(torch.tensor([[0.1, 0.2, 0.3]]), torch.tensor([[0.4, 0.1], [0.0, 0.0]]))
    assert torch.allclose(found, torch.tensor([[math.tanh(0.1), math.tanh(0.6)]]))


def test_concat_is_additive_with_the_two_halves_of_its_matrix() -> None:
    concat, additive = Concat(2, 5, 3).double(), Additive(2, 5, 3).double()
    left, right = concat.matrix[:, :2], concat.matrix[:, 2:]
    additive.load_state_dict({"weight": concat.weight, "query.weight": left, "key.weight": right})
    query, key = torch.randn(2, 7, 2, dtype=torch.float64), torch.randn(2, 11, 5, dtype=torch.float64)
    assert torch.allclose(concat(query, key), additive(query, key), rtol=0, atol=1e-14)


def test_concat_by_hand() -> None:
    score = Concat(1)
    fill(score, matrix=[[2.0, 3.0]], weight=[4.0])
    found = score(torch.tensor([[0.1]]), torch.tensor([[0.2], [-0.1]]))
    assert torch.allclose(found, torch.tensor([[4 * math.tanh(0.8), 4 * math.tanh(-0.1)]]))


def test_each_head_has_its_own_weight() -> None:
    score = Additive.projected(11, heads=3)
    query, key = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11)
    together = score(query, key)
    for head in range(3):
        alone = Additive.projected(11)
        alone.weight.data = score.weight.data[head]
        assert torch.allclose(together[:, head], alone(query[:, head], key[:, head]), atol=1e-6)


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0, 1e4])
@pytest.mark.parametrize(
    "build", [lambda: Additive.projected(11, heads=3), lambda: Concat(11, hidden=5)], ids=["additive", "concat"]
)
def test_the_factored_kernel_is_the_formula(build: type[Score], size: float) -> None:
    """Also where every unit is saturated and exponentials would overflow."""
    score = build().double()
    query, key = (size * torch.randn(2, 3, n, 11, dtype=torch.float64) for n in (5, 7))
    assert torch.allclose(score.stream(query, key), score(query, key), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("score", "query", "key", "sentence"),
    [
        (
            Additive.projected(3),
            5,
            3,
            "query: got width 5, expected the score's own 3; fix: build Additive(query=5, key=3, hidden=3)",
        ),
        (
            Additive.projected(3),
            3,
            5,
            "key: got width 5, expected the score's own 3; fix: build Additive(query=3, key=5, hidden=3)",
        ),
        (
            Additive(2, 7, 3),
            2,
            5,
            "key: got width 5, expected the score's own 7; fix: build Additive(query=2, key=5, hidden=3)",
        ),
        (
            Concat(2, 7, 3),
            5,
            7,
            "query: got width 5, expected the score's own 2; fix: build Concat(query=5, key=7, hidden=3)",
        ),
        (
            Concat(2, 7, 3),
            2,
            5,
            "key: got width 5, expected the score's own 7; fix: build Concat(query=2, key=5, hidden=3)",
        ),
    ],
)
def test_other_widths_are_one_sentence(score: Score, query: int, key: int, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(5, query), torch.ones(7, key), torch.ones(7, 3), score=score)


def test_the_shortest_spelling_is_the_whole_formula_and_nothing_else() -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in Additive(query=3, key=5, hidden=7).state_dict().items()}
    assert shapes == {"weight": (7,), "query.weight": (7, 3), "key.weight": (7, 5)}
    assert {tuple(tensor.shape) for tensor in Additive(4).state_dict().values()} == {(4,), (4, 4)}
    assert list(Additive.projected(4, heads=2).state_dict()) == ["weight"]
    assert tuple(Concat(4).matrix.shape) == (4, 8)
