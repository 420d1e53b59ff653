"""When additive scores are worth a compiled kernel, and what callers hear."""

import re

import pytest
import torch
from torch._subclasses import FakeTensorMode

from regard.compute.kernels import additive, native
from regard.compute.kernels.additive import additive_scores, choose_kernel
from regard.compute.kernels.native import additive as compiled
from regard.errors import InputError, KindError

L, S, D = 5, 7, 11


def score(queries: int, keys: int, hidden: int) -> None:
    additive_scores(torch.zeros(queries, hidden), torch.zeros(keys, hidden), torch.zeros(hidden))


def test_small_work_never_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(native, "get_loaded", lambda: None)
    monkeypatch.setattr(native, "get_failure", lambda: "")
    monkeypatch.setattr(native, "load_library", lambda *, build: asked.append(build))
    monkeypatch.setattr(additive, "_small_calls", 0)
    score(L, S, D)
    assert asked == []
    score(64, 64, 16)
    assert asked == [False]
    score(256, 256, 64)
    assert asked == [False, True]
    monkeypatch.setattr(additive, "_small_calls", additive.OFTEN)
    score(L, S, D)
    assert asked == [False, True, True]


def test_choice_says_why() -> None:
    assert choose_kernel(2**30, "cuda:0", torch.float32) == ("torch blocks", "the compiled kernel is for the CPU")
    assert choose_kernel(2**30, "cpu", torch.int64)[0] == "torch blocks"
    assert choose_kernel(1000, "cpu", torch.float32) == (
        "torch blocks",
        "1,000 pairs of hidden units are too few to compile for",
    )
    assert choose_kernel(10**9, "cpu", torch.float32)[0] == "native"
    reason = "no C++ compiler was found"
    assert choose_kernel(10**9, "cpu", torch.float32, reason) == ("torch blocks", reason)
    assert choose_kernel(1, "cpu", torch.float32, "loaded") == ("native", "the compiled kernel is loaded")


def test_tensors_without_memory_have_shapes() -> None:
    """What estimates memory or traces sees the shape of the scores and of every gradient."""
    meta = additive_scores(*(torch.zeros(shape, device="meta") for shape in ((2, L, D), (S, D), (D,))))
    assert meta.shape == (2, L, S)
    with FakeTensorMode():
        query, key, weight = (torch.zeros(shape, requires_grad=True) for shape in ((2, L, D), (S, D), (D,)))
        scores = additive_scores(query, key, weight)
        found = torch.autograd.grad(scores.sum(), (query, key, weight))
    assert scores.shape == (2, L, S)
    assert [gradient.shape for gradient in found] == [(2, L, D), (S, D), (D,)]


def test_a_kernel_without_memory_says_so() -> None:
    class FullMemory(native.Library):
        def __init__(self) -> None:
            self.function = lambda *_: lambda *_: 1  # type: ignore[method-assign]

    query, key, weight = torch.ones(L, D), torch.ones(S, D), torch.ones(D)
    with pytest.raises(MemoryError, match="the additive kernel could not allocate its buffers"):
        compiled.compute_scores(FullMemory(), query, key, weight)
    with pytest.raises(MemoryError, match="the additive kernel could not allocate its buffers"):
        compiled.compute_gradients(FullMemory(), torch.ones(L, S), query, key, weight)


@pytest.mark.parametrize(
    ("kind", "shapes", "message"),
    [
        (
            InputError,
            ((L, D), (S, 5), (D,)),
            "key: got width 5, expected the query's 11; fix: project both to one width",
        ),
        (
            InputError,
            ((L, D), (S, D), (3,)),
            "weight: got width 3, expected the query's 11; fix: project both to one width",
        ),
        (
            KindError,
            ((L, D), (S, D), (D,)),
            "query, key, weight: got torch.int64, torch.int64 and torch.int64, expected float dtypes; "
            "fix: convert them with .float()",
        ),
    ],
)
def test_messages_name_show_and_fix(kind: type[Exception], shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    """Asked of the check alone, for the shape checks of the tests would speak first."""
    dtype = torch.int64 if kind is KindError else torch.float32
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        additive._check(*(torch.zeros(shape, dtype=dtype) for shape in shapes))
