"""Prepacked matrices compute what the matrices compute, to the rounding of their precision."""

import copy
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import InputError
from regard.models.kernels import prepacked
from regard.models.kernels.prepacked import ALLOWED_ERROR, Precision, PrepackedMatrix, prepack
from regard.models.kernels.ranking import rank

ROWS, INPUT, OUTPUT = 7, 67, 131


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize("lead", [(), (ROWS,), (2, 3, ROWS)])
def test_a_product_is_the_product(precision: Precision, lead: tuple[int, ...]) -> None:
    weight, bias, inputs = draw(OUTPUT, INPUT), draw(OUTPUT), draw(*lead, INPUT)
    matrix = PrepackedMatrix.from_weight(weight, precision)
    found, wanted = F.linear(inputs, matrix, bias), F.linear(inputs.double(), weight.double(), bias.double())
    assert type(found) is torch.Tensor
    scale = F.linear(inputs.abs(), weight.abs()).amax()
    assert (found - wanted).abs().max() <= ALLOWED_ERROR[precision] * scale


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_inputs_of_any_layout(layout: str) -> None:
    weight = draw(OUTPUT, INPUT)
    inputs = {
        "transposed": draw(INPUT, ROWS).T,
        "strided": draw(ROWS, 2 * INPUT)[:, ::2],
        "expanded": draw(1, INPUT).expand(ROWS, INPUT),
    }[layout]
    found = F.linear(inputs, PrepackedMatrix.from_weight(weight, "float32"))
    torch.testing.assert_close(found, F.linear(inputs, weight))


def test_some_rows_are_prepacked_once() -> None:
    matrix = PrepackedMatrix.from_weight(draw(OUTPUT, INPUT), "float32")
    assert matrix[3:90] is matrix[3:90]
    torch.testing.assert_close(F.linear(torch.eye(INPUT), matrix[3:90]).T, draw(OUTPUT, INPUT)[3:90])
    assert type(matrix[5]) is torch.Tensor
    assert matrix[5:5].shape == (0, INPUT)


def test_everything_else_sees_the_numbers() -> None:
    weight = draw(OUTPUT, INPUT)
    matrix = PrepackedMatrix.from_weight(weight, "int8")
    torch.testing.assert_close(matrix.T @ matrix, weight.T @ weight)
    assert F.linear(draw(0, INPUT), matrix).shape == (0, OUTPUT)
    assert F.linear(draw(2, INPUT).double(), matrix.double()).dtype == torch.float64


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_cells_step_as_torchs(kind: Any) -> None:
    cells = kind(INPUT, 71)
    step = torch.gru_cell if kind is nn.GRU else torch.lstm_cell
    state: Any = draw(ROWS, 71) if kind is nn.GRU else (draw(ROWS, 71), draw(71, ROWS).T.contiguous())
    parts = [cells.weight_ih_l0, cells.weight_hh_l0, cells.bias_ih_l0, cells.bias_hh_l0]
    wanted = step(draw(ROWS, INPUT), state, *parts)
    packed = [PrepackedMatrix.from_weight(part, "float32") if part.dim() == 2 else part for part in parts]
    torch.testing.assert_close(step(draw(ROWS, INPUT), state, *packed), wanted)


def test_a_model_gives_the_same_and_keeps_its_embedding() -> None:
    table = nn.Embedding(OUTPUT, INPUT)
    output = nn.Linear(INPUT, OUTPUT)
    output.weight = table.weight
    model = nn.Sequential(table, nn.Linear(INPUT, INPUT), output).eval()
    tokens = torch.arange(ROWS)
    wanted, own = model(tokens), copy.deepcopy(model)
    prepack(own)
    assert isinstance(own[2].weight, PrepackedMatrix)
    assert type(own[0].weight) is nn.Parameter
    torch.testing.assert_close(own(tokens), wanted, rtol=1e-5, atol=1e-5)


def test_the_best_tokens_are_ranked_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.models.kernels.ranking.PREPACKED_CHUNK", 40)
    weight, bias, vectors = draw(OUTPUT, INPUT), draw(OUTPUT), draw(ROWS, INPUT)
    excluded = torch.tensor([2, 101])
    with torch.inference_mode():
        wanted = rank(vectors, weight, bias, 5, excluded)
        found = rank(vectors, PrepackedMatrix.from_weight(weight, "float32"), bias, 5, excluded)
    assert torch.equal(found.tokens, wanted.tokens)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_a_product_that_is_wrong_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(prepacked.BUILDERS, "int8", lambda weight: lambda inputs, bias: F.linear(inputs, weight) + 9)
    with pytest.raises(InputError, match=r"precision: got int8 \(a product that is off by .*fix: use --precision"):
        PrepackedMatrix.from_weight(draw(OUTPUT, INPUT), "int8")


def test_a_torch_without_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_missing(weight: torch.Tensor) -> None:
        raise AttributeError("no such operator")

    monkeypatch.setitem(prepacked.BUILDERS, "bfloat16", raise_missing)
    with pytest.raises(InputError, match=r"precision: got bfloat16 \(no such operator\)"):
        prepack(nn.Linear(INPUT, OUTPUT), "bfloat16")
