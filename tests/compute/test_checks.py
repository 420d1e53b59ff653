"""Bad input is one sentence, word for word: what was got, what was expected, and the fix."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import (
    Additive,
    Argmax,
    Bilinear,
    Causal,
    Concat,
    Cosine,
    Dense,
    Dot,
    Gaussian,
    InputError,
    KindError,
    Lengths,
    Location,
    Mask,
    PlanError,
    Prior,
    RegardError,
    Softmax,
    Sparsemax,
    Table,
    attend,
)
from regard.algebra.shapes import Tensor

pytestmark = pytest.mark.usefixtures("as_installed")

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13


def call(**changes: Any) -> Callable[[], object]:
    """Call `attend` on good input, except for the changes."""
    good = {"query": torch.ones(B, H, L, D), "key": torch.ones(B, H, S, D), "value": torch.ones(B, H, S, E)}
    return lambda: attend(**(good | changes))


def make_ones(*shape: int, **kind: Any) -> Tensor:
    return torch.ones(shape, **kind)


BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    # shapes
    "widths": (
        call(key=make_ones(B, H, S, 17)),
        ValueError,
        "key: got width 17, expected the width of the query, 11; "
        "fix: project them to one width, or use a score that takes two: additive, concat, bilinear",
    ),
    "values": (
        call(value=make_ones(B, H, S + 1, E)),
        ValueError,
        "value: got 8 values, expected as many as keys, 7; fix: give each key its value",
    ),
    "one axis": (
        call(query=make_ones(D)),
        ValueError,
        "query: got a float32 tensor of shape (11,), expected at least (queries, width); "
        "fix: add the missing axis with tensor[None]",
    ),
    "no axis": (
        call(key=make_ones()),
        ValueError,
        "key: got a float32 tensor of shape (), expected at least (keys, width); "
        "fix: add the missing axis with tensor[None]",
    ),
    "batches": (
        call(key=make_ones(B + 3, H, S, D)),
        ValueError,
        "query, key, value: got lead axes (2, 3), (5, 3), (2, 3), expected axes that broadcast; "
        "fix: make them equal, or 1 where shared",
    ),
    "zero queries": (
        call(query=make_ones(B, H, 0, D)),
        ValueError,
        "query: got a float32 tensor of shape (2, 3, 0, 11), expected at least one in (queries, width); "
        "fix: skip the call when there is nothing",
    ),
    "zero keys": (
        call(key=make_ones(B, H, 0, D), value=make_ones(B, H, 0, E)),
        ValueError,
        "key: got a float32 tensor of shape (2, 3, 0, 11), expected at least one in (keys, width); "
        "fix: skip the call when there is nothing",
    ),
    "zero width": (
        call(query=make_ones(B, H, L, 0), key=make_ones(B, H, S, 0)),
        ValueError,
        "query: got a float32 tensor of shape (2, 3, 5, 0), expected at least one in (queries, width); "
        "fix: skip the call when there is nothing",
    ),
    # dtypes
    "integers": (
        call(query=make_ones(B, H, L, D, dtype=torch.long)),
        TypeError,
        "query: got a int64 tensor of shape (2, 3, 5, 11), expected a float tensor; "
        "fix: write tensor.float(), or embed the tokens first",
    ),
    "integer values": (
        call(value=make_ones(B, H, S, E, dtype=torch.int32)),
        TypeError,
        "value: got a int32 tensor of shape (2, 3, 7, 13), expected a float tensor; "
        "fix: write tensor.float(), or embed the tokens first",
    ),
    "bool keys": (
        call(key=make_ones(B, H, S, D, dtype=torch.bool)),
        TypeError,
        "key: got a bool tensor of shape (2, 3, 7, 11), expected a float tensor; "
        "fix: write tensor.float(), or embed the tokens first",
    ),
    "complex numbers": (
        call(query=make_ones(B, H, L, D, dtype=torch.complex64)),
        TypeError,
        "query: got a complex64 tensor of shape (2, 3, 5, 11), expected a float tensor; "
        "fix: write torch.view_as_real(tensor).flatten(-2)",
    ),
    "numbers of eight bits": (
        call(value=make_ones(B, H, S, E).to(torch.float8_e4m3fn)),
        TypeError,
        "value: got a float8_e4m3fn tensor of shape (2, 3, 7, 13), expected float32, float64, float16 or bfloat16; "
        "fix: write tensor.float()",
    ),
    "two dtypes": (
        call(key=make_ones(B, H, S, D, dtype=torch.float64)),
        TypeError,
        "key: got a float64 tensor of shape (2, 3, 7, 11), expected the query's dtype, float32; "
        "fix: write key.to(query.dtype)",
    ),
    "values of another dtype": (
        call(value=make_ones(B, H, S, E, dtype=torch.bfloat16)),
        TypeError,
        "value: got a bfloat16 tensor of shape (2, 3, 7, 13), expected the query's dtype, float32; "
        "fix: write value.to(query.dtype)",
    ),
    "a score of another dtype": (
        call(score=Bilinear(D, D).double()),
        TypeError,
        "score: got float64 parameters, expected the query's dtype, float32; fix: write score.to(query.dtype)",
    ),
    "a score of another dtype inside a sum": (
        call(score=Dot() + 0.5 * Additive(D).half()),
        TypeError,
        "score: got float16 parameters, expected the query's dtype, float32; fix: write score.to(query.dtype)",
    ),
    # devices
    "two devices": (
        call(key=make_ones(B, H, S, D, device="meta")),
        ValueError,
        "key: got device meta, expected the query's device, cpu; fix: write key.to(query.device)",
    ),
    "values elsewhere": (
        call(value=make_ones(B, H, S, E, device="meta")),
        ValueError,
        "value: got device meta, expected the query's device, cpu; fix: write value.to(query.device)",
    ),
    "a mask elsewhere": (
        call(mask=Causal() & Mask.keep(make_ones(L, S, dtype=torch.bool, device="meta"))),
        ValueError,
        "mask: got a tensor on device meta, expected the query's device, cpu; fix: build the mask on query.device",
    ),
    "lengths elsewhere": (
        call(mask=Lengths(make_ones(B, 1, dtype=torch.long, device="meta"))),
        ValueError,
        "mask: got a tensor on device meta, expected the query's device, cpu; fix: build the mask on query.device",
    ),
    "a bias elsewhere": (
        call(bias=Prior(make_ones(S, device="meta"))),
        ValueError,
        "bias: got a tensor on device meta, expected the query's device, cpu; fix: build the bias on query.device",
    ),
    "a score elsewhere": (
        call(score=Bilinear(D, D).to("meta")),
        ValueError,
        "score: got a tensor on device meta, expected the query's device, cpu; fix: build the score on query.device",
    ),
    # masks
    "a bare bool tensor": (
        call(mask=make_ones(L, S, dtype=torch.bool)),
        TypeError,
        "mask: got a bool tensor of shape (5, 7), expected a Mask, whose polarity is in its type; "
        "fix: write Mask.keep(tensor) if True means may attend, Mask.drop(tensor) if True means padding",
    ),
    "a bare float tensor": (
        call(mask=make_ones(L, S)),
        TypeError,
        "mask: got a float32 tensor of shape (5, 7), expected a Mask, whose polarity is in its type; "
        "fix: write bias=Dense(tensor) if it is added to scores, mask=Mask.keep(tensor > 0) if 1 means may attend",
    ),
    "a number for a mask": (
        call(mask=3),
        TypeError,
        "mask: got 3, expected a Mask; fix: write Full(), Causal(), Lengths(tensor) or Mask.keep(tensor)",
    ),
    "a class of masks": (
        call(mask=Causal),
        TypeError,
        "mask: got the class Causal, expected a Mask; "
        "fix: write Full(), Causal(), Lengths(tensor) or Mask.keep(tensor)",
    ),
    "a mask of another size": (
        call(mask=Table(make_ones(S, L, dtype=torch.bool))),
        ValueError,
        "mask.table: got (7, 5), expected (queries, keys) = (5, 7); "
        "fix: give it one row for each query and one column for each key",
    ),
    "lengths beyond the keys": (
        call(mask=Lengths(torch.tensor([[3], [8]]))),
        ValueError,
        "mask.lengths: got 8, expected at most keys=7; fix: count only the keys that are there",
    ),
    "negative lengths": (
        lambda: Lengths(torch.tensor([3, -1])),
        ValueError,
        "lengths: got -1, expected at least 0; fix: a length counts keys; an empty sequence has length 0",
    ),
    # parts
    "a class of scores": (
        call(score=Dot),
        TypeError,
        "score: got the class Dot, expected a Score; fix: pass an instance, such as Dot()",
    ),
    "a function for a normalizer": (
        call(normalizer=torch.softmax),
        TypeError,
        "normalizer: got a builtin_function_or_method, expected a Normalizer; fix: pass an instance, such as Softmax()",
    ),
    "a normalizer for a score": (
        call(score=Softmax()),
        TypeError,
        "score: got a Softmax, expected a Score; fix: pass an instance, such as Dot()",
    ),
    "a normalizer for a reading": (
        call(aggregate=Sparsemax()),
        TypeError,
        "aggregate: got a Sparsemax, expected an Aggregate; fix: pass an instance, such as Soft()",
    ),
    "a tensor for a bias": (
        call(bias=make_ones(L, S)),
        TypeError,
        "bias: got a float32 tensor of shape (5, 7), expected a Bias; fix: write Dense(tensor) for a table of numbers",
    ),
    "a bias of another size": (
        call(bias=Dense(make_ones(S, L))),
        ValueError,
        "bias.table: got (7, 5), expected (queries, keys) = (5, 7); "
        "fix: give it one row for each query and one column for each key",
    ),
    "a list for a query": (
        call(query=[[1.0]]),
        TypeError,
        "query: got a list, expected a float tensor; fix: write torch.as_tensor(...)",
    ),
    "a score of other widths": (
        call(score=Concat(D, D + 1, 3)),
        ValueError,
        "key: got width 11, expected the score's own 12; fix: build Concat(query=11, key=11, hidden=3)",
    ),
    "too many keys for the score": (
        call(score=Location(D, keys=5)),
        ValueError,
        "key: got 7 keys, expected at most 5; fix: build Location(11, keys=7)",
    ),
    # numbers
    "all dropped": (
        call(dropout=1.0),
        ValueError,
        "dropout: got 1.0, expected a rate from 0 to below 1; fix: use 0 in evaluation",
    ),
    "a negative rate": (
        call(dropout=-0.1),
        ValueError,
        "dropout: got -0.1, expected a rate from 0 to below 1; fix: use 0 in evaluation",
    ),
    "no rate": (
        call(dropout=float("nan")),
        ValueError,
        "dropout: got nan, expected a rate from 0 to below 1; fix: use 0 in evaluation",
    ),
    # backends
    "an unknown backend": (
        call(backend="flash"),
        ValueError,
        "backend: got 'flash', expected one of auto, linear, local, few_queries, sdpa, stream, rows, flex, eager; "
        'fix: use "auto"',
    ),
    "a backend that cannot": (
        call(backend="sdpa", aggregate=Argmax()),
        NotImplementedError,
        "backend: got 'sdpa', expected one that can compute this: a hard aggregate needs the weights themselves; "
        'fix: use backend="auto", which finds one that can',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name: str) -> None:
    make, kind, sentence = BAD[name]
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$") as caught:
        make()
    assert isinstance(caught.value, RegardError)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", BAD)
def test_every_sentence_names_shows_and_fixes(name: str) -> None:
    assert re.fullmatch(r"[\w., ]+: got .+, expected .+; fix: .+", BAD[name][2])


def test_a_sentence_is_caught_as_the_builtin_that_a_caller_expects() -> None:
    assert issubclass(KindError, TypeError)
    assert issubclass(PlanError, NotImplementedError)


def test_a_number_for_the_whole_score_may_have_another_dtype() -> None:
    """It is promoted, as torch does with numbers."""
    query = torch.randn(5, 3, dtype=torch.float64)
    assert attend(query, query, query, score=Gaussian.learned()).output.dtype == torch.float64


@pytest.mark.parametrize("backend", ["eager", "sdpa", "local", "stream"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_settings_of_another_dtype_do_not_change_that_of_the_output(backend: str, dtype: torch.dtype) -> None:
    """A temperature for each head is a tensor, and .to() of a model does not move those that are not parameters."""
    query = torch.randn(B, H, L, D, dtype=dtype)
    heads = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    for options in ({"normalizer": Softmax(heads)}, {"score": Gaussian(heads)}, {"score": Cosine(heads)}):
        output = attend(query, query, query, backend=backend, **options).output  # type: ignore[arg-type]
        assert output.dtype == dtype
        wide = query.double()
        true = attend(wide, wide, wide, backend="eager", **options).output  # type: ignore[arg-type]
        assert (output.double() - true).abs().max() <= 20 * torch.finfo(dtype).eps


@pytest.mark.parametrize("backend", ["auto", "eager", "stream"])
def test_under_autocast_parameters_keep_their_dtype(backend: str) -> None:
    query = torch.randn(5, D)
    with torch.autocast("cpu", torch.bfloat16):
        half = torch.nn.Linear(D, D)(query)
        assert half.dtype == torch.bfloat16
        output = attend(half, half, half, score=Bilinear(D, D), backend=backend).output  # type: ignore[arg-type]
    assert output.dtype == torch.bfloat16


def test_input_that_is_merely_unusual_is_taken() -> None:
    """One query, one key, width one, lead axes of one and of five, batches of none."""
    assert attend(make_ones(1, 1), make_ones(1, 1), make_ones(1, 1)).output.shape == (1, 1)
    assert attend(make_ones(2, 1, 3, 1, 2, L, D), make_ones(1, 1, 1, 1, 1, S, D), make_ones(S, E)).output.shape == (
        2,
        1,
        3,
        1,
        2,
        L,
        E,
    )
    assert attend(make_ones(0, L, D), make_ones(0, S, D), make_ones(0, S, E)).output.shape == (0, L, E)
    assert attend(make_ones(L, D).T.contiguous().T, make_ones(S, D), make_ones(S, E)).output.shape == (L, E)


def test_shapes_are_known_without_numbers() -> None:
    """On the meta device nothing is computed and everything has its shape."""
    query, key, value = (make_ones(B, n, D, device="meta") for n in (L, S, S))
    for options in ({}, {"mask": Causal()}, {"normalizer": Sparsemax()}, {"score": Additive(D).to("meta")}):
        output = attend(query, key, value, **options).output  # type: ignore[arg-type]
        assert output.shape == (B, L, D)
        assert output.is_meta


def test_a_call_like_an_earlier_one_is_still_checked() -> None:
    """Plain calls that are alike are checked once; what differs from them in anything is checked again."""
    query, key, value = torch.randn(2, L, D), torch.randn(2, S, D), torch.randn(2, S, E)
    attend(query, key, value, mask=Causal())
    with pytest.raises(InputError, match=r"^dropout: "):
        attend(query, key, value, mask=Causal(), dropout=1.0)
    with pytest.raises(KindError, match=r"^value: "):
        attend(query, key, value.double(), mask=Causal())
    with pytest.raises(InputError, match=r"^value: got 6 values"):
        attend(query, key, value[:, :-1], mask=Causal())
    with pytest.raises(RegardError, match=r"^key"):
        attend(query, key[..., :-1], value, mask=Causal())
    with pytest.raises(PlanError, match=r"^backend: "):
        attend(query, key, value, mask=Causal(), backend="linear")
