"""What a backend writes out and what it keeps for the backward pass grow with the length, not with its square."""

import functools
import math
from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard import (
    Additive,
    ALiBi,
    Causal,
    Documents,
    FeatureDot,
    Gaussian,
    Laplacian,
    Lengths,
    LocalGaussian,
    Prior,
    RowTotal,
    Sample,
    Sigmoid,
    Sparsemax,
    Window,
    attend,
)
from regard.algebra.shapes import Tensor
from regard.compute.lowering import spans

pytestmark = pytest.mark.usefixtures("as_installed")  # what is measured is what users run

H, D, E = 2, 5, 3
BUDGET = 2**13  # numbers in a block of these tests
SHORT, LONG = 384, 768


class Watch(TorchDispatchMode):
    """The largest piece of memory that any operation returns, and the pairs that fused kernels score."""

    def __init__(self) -> None:
        super().__init__()
        self.largest, self.pairs = 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes())
        if func is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default:
            query, key = args[:2]
            self.pairs += math.prod(query.shape[:-1]) * key.shape[-2]
        return out


def run(length: int, options: dict[str, Any]) -> tuple[Watch, int]:
    """Forward and backward; what was seen, and the bytes of all tensors kept for the backward pass."""
    query, key, value = (torch.randn(1, H, length, width, requires_grad=True) for width in (D, D, E))
    kept: dict[int, torch.UntypedStorage] = {}  # held, or another tensor might get the same address

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with Watch() as watch:
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            attended = attend(query, key, value, **options)
        loss = attended.output.sum() if attended.log_prob is None else attended.log_prob.sum()
        loss.backward()  # type: ignore[no-untyped-call]
    assert query.grad is not None
    return watch, sum(storage.nbytes() for storage in kept.values())


CASES: dict[str, tuple[str, Any]] = {
    "plain": ("sdpa", lambda n: {}),
    "causal": ("sdpa", lambda n: {"mask": Causal()}),
    "lengths": ("sdpa", lambda n: {"mask": Lengths(torch.tensor(n // 2))}),
    "gaussian": ("sdpa", lambda n: {"score": Gaussian(), "mask": Lengths(torch.tensor(n // 2))}),
    "alibi": ("local", lambda n: {"bias": ALiBi(H), "mask": Causal()}),
    "prior": ("sdpa", lambda n: {"bias": Prior(torch.zeros(n, requires_grad=True))}),
    "window": ("local", lambda n: {"mask": Window(before=20, after=10), "backend": "local"}),
    "window of documents": (
        "local",
        lambda n: {"mask": Window(before=20, after=10) & Documents(torch.arange(n) // 50), "backend": "local"},
    ),
    "local-p in a window": (
        "local",
        lambda n: {
            "normalizer": LocalGaussian(torch.arange(float(n)), 5.0),
            "mask": Window(before=20, after=10),
            "backend": "local",
        },
    ),
    "linear": ("linear", lambda n: {"score": FeatureDot(), "normalizer": RowTotal(), "mask": Causal()}),
    "additive": ("stream", lambda n: {"score": Additive.projected(D)}),
    "laplacian": ("stream", lambda n: {"score": Laplacian(), "mask": Lengths(torch.tensor(n // 4))}),
    "sigmoid": ("stream", lambda n: {"normalizer": Sigmoid()}),
    "dropout": ("stream", lambda n: {"dropout": 0.3}),
    "sparsemax": ("rows", lambda n: {"normalizer": Sparsemax()}),
    "sample": ("rows", lambda n: {"aggregate": Sample()}),
}


@pytest.mark.parametrize("name", CASES)
def test_memory_is_linear_in_the_length(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as long, at most twice as much: kept for the backward pass, and in the largest single tensor.

    Blocks are made small first, as they are at real lengths: they have a fixed size.
    """
    monkeypatch.setattr(spans, "choose_rows_per_block", functools.partial(spans.choose_rows_per_block, budget=BUDGET))
    backend, options = CASES[name]
    for length in (SHORT, LONG):
        query = torch.randn(1, H, length, D)
        assert attend(query, query, query, **options(length)).plan.backend == backend
    (short, kept), (long, later) = (run(length, options(length)) for length in (SHORT, LONG))
    assert later <= 2.1 * kept
    assert long.largest <= 2.1 * short.largest
    assert long.largest < H * LONG * LONG * 4 / 4  # no table of all pairs, nor a quarter of one


def test_the_watch_sees_a_table_where_there_is_one() -> None:
    """The definition writes it out: if this passed unseen, the test above would prove nothing."""
    (short, kept), (long, later) = (run(length, {"backend": "eager"}) for length in (SHORT, LONG))
    assert long.largest >= H * LONG * LONG * 4
    assert later > 3 * kept
    assert long.largest > 3 * short.largest


@pytest.mark.parametrize("width", [16, 64, 200])
def test_a_window_scores_no_pair_far_outside_of_it(width: int) -> None:
    """A block of b queries needs the b + width keys around it; blocks are as wide as the window, at least 64."""
    length = 2048
    query, key, value = (torch.randn(1, H, length, D) for _ in range(3))
    with Watch() as watch:
        attended = attend(query, key, value, mask=Window(before=width - 1, after=0), backend="local")
    assert attended.plan.backend == "local"
    needed = H * length * width
    block = max(64, width)
    assert needed <= watch.pairs <= H * length * (block + width + 32)
    assert watch.pairs < H * length * length / 4


def test_a_causal_mask_by_blocks_leaves_out_what_comes_after() -> None:
    """A table of this size goes by blocks of queries, each over the keys up to its last."""
    query, key, value = (torch.randn(1, 1, n, D) for n in (1024, 1536, 1536))
    with Watch() as watch:
        attend(query, key, value, mask=Causal(), backend="local")
    seen = sum(512 + row + 1 for row in range(1024))
    assert seen <= watch.pairs <= seen + 1024 * 512


def test_lengths_leave_out_the_padding_that_all_share() -> None:
    """Blocks of whole rows are cut at the longest sequence."""
    found = []
    score = Laplacian()
    for longest in (64, 512):
        query, key, value = (torch.randn(2, H, 512, D) for _ in range(3))
        with Watch() as watch:
            attend(query, key, value, score=score, mask=Lengths(torch.tensor([[3], [longest]])))
        found.append(watch.largest)
    assert found[0] < found[1] / 2
