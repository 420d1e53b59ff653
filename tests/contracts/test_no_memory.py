"""Tensors without numbers behind them never reach a kernel that takes pointers: shapes come out, or a sentence."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

import regard
from regard.compute.kernels import few_queries, native, noise, summary
from regard.compute.kernels.additive import additive_scores
from regard.compute.kernels.dropout import add_dropout, dropout, relu_dropout
from regard.compute.kernels.flash import flash_attention
from regard.compute.kernels.monotonic import align_expected
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.simplex import entmax, sparsemax
from regard.errors import RegardError
from regard.models.kernels import ranking, recurrent
from regard.models.kernels.cross_entropy import cross_entropy

pytestmark = pytest.mark.skipif(native.load_library() is None, reason="no compiler here")

OURS = ("InputError", "KindError", "PlanError")
CASES = """
import json, sys, torch
from torch._subclasses.fake_tensor import FakeTensorMode
from regard.algebra import catalog
from regard.compute import catalog_cases, verification
from regard.errors import RegardError
from regard.compute.kernels import native

native.load_library()
torch.set_num_threads(1)
kind, told = sys.argv[1], {}
sizes = catalog.Sizes(query=4, key=4, value=4, lead=(2, 3), queries=5, keys=5)
shapes = (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4)

def run(parts, grad):
    tensors = [torch.randn(shape, requires_grad=grad) for shape in shapes]
    with torch.set_grad_enabled(grad):
        output = verification.run_backend(parts, tensors, "auto").output
    if grad and output.requires_grad:
        output.sum().backward()
    return list(output.shape)

def shapes_of(case, grad):
    if kind == "meta":
        with torch.device("meta"):
            return run(verification.build_parts(case, sizes, dtype=torch.float32), grad)
    parts = verification.build_parts(case, sizes, dtype=torch.float32)
    with FakeTensorMode(allow_non_fake_inputs=True):
        return run(parts, grad)

for case in catalog_cases.choose_pairwise_cases()[::8]:
    for grad in (False, True):
        print(case, grad, file=sys.stderr)  # the last one, should the process end
        try:
            told[f"{case} {grad}"] = shapes_of(case, grad)
        except Exception as error:
            told[f"{case} {grad}"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


@pytest.mark.parametrize("kind", ["fake", "meta"])
def test_no_combination_ends_the_process(kind: str) -> None:
    run = subprocess.run([sys.executable, "-c", CASES, kind], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-300:]
    told = json.loads(run.stdout)
    raw = {case: answer for case, answer in told.items() if answer != [2, 3, 5, 4] and not str(answer).startswith(OURS)}
    assert not raw


Run = Callable[[Callable[..., Tensor]], Tensor]
TABLE = (2, 3, 4)
# Each function with a kernel of ours behind it, from a maker of tensors to what comes out.
KERNELS: Mapping[str, Run] = {
    "sparsemax": lambda new: sparsemax(new(*TABLE)),
    "entmax": lambda new: entmax(new(*TABLE), None, 1.7),
    "monotonic": lambda new: align_expected(new(*TABLE)),
    "additive": lambda new: additive_scores(new(*TABLE), new(*TABLE), new(4)),
    "summary": lambda new: summary.summarize(new(*TABLE), None, 1.0, 2).entropy,
    "dropout": lambda new: dropout(new(*TABLE), 0.5),
    "added": lambda new: add_dropout(new(*TABLE), new(*TABLE), 0.5),
    "rectified": lambda new: relu_dropout(new(*TABLE), 0.5),
    "gru": lambda new: recurrent.gru(new(5, 2, 9), new(2, 3), new(9, 3), new(9)),
    "lstm": lambda new: recurrent.lstm(new(5, 2, 12), (new(2, 3), new(2, 3)), new(12, 3), new(12)).states,
    "fused": lambda new: flash_attention(new(1, *TABLE), new(1, *TABLE), new(1, *TABLE), scale=1.0)[0],
    "few": lambda new: few_queries.few_queries_attention(new(1, *TABLE), new(1, *TABLE), new(1, *TABLE)),
}


def draw_real(*shape: int) -> Tensor:
    """Draw numbers that want a gradient."""
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_gives_shapes_under_fake_tensors(name: str) -> None:
    shape = KERNELS[name](draw_real).shape
    with FakeTensorMode():
        found = KERNELS[name](draw_real)
        assert found.shape == shape
        if found.requires_grad:
            found.sum().backward()
    kept = {}
    made = KERNELS[name](lambda *size: kept.setdefault(len(kept), draw_real(*size)))
    with FakeTensorMode(allow_non_fake_inputs=True):
        again = iter(list(kept.values()))
        assert KERNELS[name](lambda *_: next(again)).shape == made.shape


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_gives_shapes_on_the_meta_device(name: str) -> None:
    shape = KERNELS[name](draw_real).shape
    with torch.device("meta"):
        assert KERNELS[name](draw_real).shape == shape


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"dropout", "added", "rectified"}))
def test_a_default_device_elsewhere_takes_no_memory_away(name: str) -> None:
    """What is made on the way is made where the tensors are."""
    kept: list[Tensor] = []
    made = KERNELS[name](lambda *size: (kept.append(draw_real(*size)), kept[-1])[1])
    again = iter(kept)
    with torch.device("meta"):
        found = KERNELS[name](lambda *_: next(again))
    assert not found.is_meta
    torch.testing.assert_close(found, made)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"dropout", "added", "rectified"}))
def test_a_mode_that_looks_on_changes_no_number(name: str) -> None:
    kept: list[Tensor] = []
    made = KERNELS[name](lambda *size: (kept.append(draw_real(*size)), kept[-1])[1])
    again = iter(kept)
    with FlopCounterMode(display=False):
        torch.testing.assert_close(KERNELS[name](lambda *_: next(again)), made)


def make_freed() -> Tensor:
    numbers = torch.randn(2, 3)
    numbers.untyped_storage().resize_(0)
    return numbers


def make_shrunk() -> Tensor:
    numbers = torch.randn(2, 3)
    numbers.untyped_storage().resize_(8)
    return numbers


def make_escaped() -> Tensor:
    kept: list[Tensor] = []
    torch.func.vmap(lambda row: (kept.append(row), row)[1])(torch.randn(2, 3))
    return kept[0]


def make_fake() -> Tensor:
    with FakeTensorMode():
        return torch.randn(2, 3)


WITHOUT: Mapping[str, Callable[[], Tensor]] = {
    "fake": make_fake,
    "meta": lambda: torch.randn(2, 3, device="meta"),
    "freed": make_freed,
    "escaped from vmap": make_escaped,
    "sparse": lambda: torch.eye(3).to_sparse(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "zeros that are not there": lambda: torch._efficientzerotensor((2, 3)),
    "functional": lambda: torch._to_functional_tensor(torch.ones(2, 3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WITHOUT)
def test_what_has_no_memory_is_not_reachable(kind: str) -> None:
    assert not tensor_memory.is_reachable(WITHOUT[kind]())
    assert tensor_memory.is_reachable(torch.ones(2), None, torch.nn.Parameter(torch.ones(1)), torch.ones(0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "numbers", [make_shrunk, make_freed, lambda: torch._neg_view(torch.ones(2)), make_fake], ids=range(4)
)
def test_a_pointer_is_refused_where_a_loop_would_read_something_else(numbers: Callable[[], Tensor]) -> None:
    for give in (tensor_memory.get_address, tensor_memory.get_strided_address):
        with pytest.raises(RegardError, match="a tensor for a compiled kernel"):
            give(numbers())


def test_a_pointer_needs_numbers_that_lie_as_the_loop_walks() -> None:
    wide = torch.ones(4, 6)
    with pytest.raises(RegardError, match="one after another"):
        tensor_memory.get_address(wide[:, :3])
    with pytest.raises(RegardError, match="next to each other"):
        tensor_memory.get_strided_address(wide[:, ::2])
    assert tensor_memory.get_strided_address(wide[:, :3]) == tensor_memory.get_address(wide) == wide.data_ptr()
    assert (
        tensor_memory.get_address(None)
        is tensor_memory.get_strided_address(None)
        is tensor_memory.get_unchecked_address(None)
        is None
    )


def test_pointers_come_from_the_gate_alone() -> None:
    source = Path(regard.__file__).parent
    private = re.compile(r"data_ptr\(|aten\._scaled_dot|_VariableFunctions\._scaled_dot")
    found = {path.name for path in source.rglob("*.py") if private.search(path.read_text())}
    assert found == {"tensor_memory.py", "flash.py"}


UNEQUAL: Mapping[str, Callable[[], object]] = {
    "few: a value too few": lambda: few_queries.few_queries_attention(
        torch.ones(1, 1, 2, 4), torch.ones(1, 1, 9, 4), torch.ones(1, 1, 3, 4)
    ),
    "few: two widths": lambda: few_queries.few_queries_attention(
        torch.ones(1, 1, 2, 9), torch.ones(1, 1, 3, 4), torch.ones(1, 1, 3, 4)
    ),
    "few: two kinds": lambda: few_queries.few_queries_attention(
        torch.ones(1, 1, 2, 4), torch.ones(1, 1, 3, 4).double(), torch.ones(1, 1, 3, 4)
    ),
    "fused: a value too few": lambda: flash_attention(*(torch.ones(1, 1, size, 4) for size in (3, 3, 2)), scale=1.0),
    "fused: a head too few": lambda: flash_attention(*(torch.ones(1, size, 3, 4) for size in (2, 1, 1)), scale=1.0),
    "gru: a start too small": lambda: recurrent.gru(
        torch.ones(5, 2, 9), torch.ones(1, 3), torch.ones(9, 3), torch.ones(9)
    ),
    "lstm: a cell of another kind": lambda: recurrent.lstm(
        torch.ones(5, 2, 12), (torch.ones(2, 3), torch.ones(2, 3).half()), torch.ones(12, 3), torch.ones(12)
    ),
    "rank: a bias too small": lambda: ranking.rank(
        torch.ones(1, 2), torch.ones(5, 2), torch.ones(3), 1, torch.zeros(0, dtype=torch.int64)
    ),
    "summary: a total too few": lambda: summary.summarize(torch.ones(4, 3), torch.ones(2), 1.0, 1),
}


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", UNEQUAL)
def test_sizes_that_a_kernel_would_read_past_are_refused(name: str) -> None:
    with torch.no_grad(), pytest.raises(RegardError, match=r"got .*, expected .*; fix: "):
        UNEQUAL[name]()


@pytest.mark.usefixtures("as_installed")
def test_what_can_be_brought_into_one_form_is() -> None:
    base, numbers = torch.ones(3), torch.ones(2, 3)
    assert add_dropout(base, numbers, 0.5).shape == (2, 3)
    short = torch.tensor([1, 3], dtype=torch.int32)
    with torch.no_grad():
        ranked = ranking.rank(torch.ones(1, 1), torch.arange(4.0)[:, None], None, 2, short)
    assert ranked.tokens.tolist() == [[2, 0]]
    judged = cross_entropy(torch.ones(2, 1), torch.arange(4.0)[:, None], None, short)
    assert judged.correct.tolist() == [False, True]
    strided = torch.arange(8)[::2]
    assert torch.equal(
        noise.draw_uniform(1, (), strided, strided), noise.draw_uniform(1, (), strided.clone(), strided.clone())
    )
