"""Blocks of queries over gathered keys give what the definition gives, under every kind of sparse mask."""

import math

import pytest
import torch

from regard import (
    Additive,
    Causal,
    CenteredWindow,
    Documents,
    Gaussian,
    Laplacian,
    Lengths,
    Mask,
    Prior,
    Relative,
    SoftmaxPlusOne,
    Sparsemax,
    Window,
    attend,
)
from regard.algebra.pairs import RowBlocks
from regard.compute.lowering import gather

QUERIES, KEYS, DIM = 37, 41, 3
LEAD = (2, 3)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks of four queries, and take any mask for a sparse one."""
    for name, number in {"ROWS": 4, "SEGMENT_ROWS": 8, "SMALLEST_TABLE": 0, "MOST_READ": 1.0, "BUDGET": 2**11}.items():
        monkeypatch.setattr(gather, name, number)
    monkeypatch.setattr("regard.compute.lowering.spans.choose_rows_per_block", lambda per_row, queries: 3)
    monkeypatch.setattr("regard.compute.planning._plans", {})


def make_masks() -> dict[str, Mask]:
    generator = torch.Generator().manual_seed(1)
    some = torch.zeros(KEYS, dtype=torch.bool).index_fill_(0, torch.tensor([2, 17]), True)
    rows = torch.zeros(QUERIES, 1, dtype=torch.bool).index_fill_(0, torch.tensor([5, 30]), True)
    documents = torch.repeat_interleave(torch.arange(6), torch.tensor([1, 13, 2, 9, 15, 1]))
    shuffled = documents[torch.randperm(KEYS, generator=generator)]
    batch = torch.stack([documents, documents.flip(0)])[:, None]
    cells = (torch.rand(10, 11, generator=generator) < 0.2).repeat_interleave(4, 0).repeat_interleave(4, 1)
    return {
        "window and first keys": Window(3, 0) | Lengths(torch.tensor(2)),
        "window and global tokens": Window(2, 2) | Mask.keep_keys(some) | Mask.keep(rows),
        "first keys of each sequence": Window(1, 1) | Lengths(torch.tensor([[1], [4]])),
        "documents": Documents(documents),
        "documents in any order": Documents(shuffled),
        "causal documents": Documents(documents) & Causal(),
        "documents of each sequence": Documents(batch),
        "documents of queries": Documents(documents, shuffled[:QUERIES]),
        "documents with a window": (Documents(documents) & Window(5, 1)) | Lengths(torch.tensor(1)),
        "blocks": Mask.keep(cells[:QUERIES, :KEYS]),
        "blocks of each head": Mask.keep(torch.stack([cells[:QUERIES, :KEYS].roll(i, 1) for i in range(3)])),
        "centers": CenteredWindow(torch.linspace(0, KEYS, QUERIES), 2) | Lengths(torch.tensor(1)),
        "all but a window": ~Window(9, 9),
        "nothing": Documents(documents) & Documents(documents + 100, documents[:QUERIES]),
    }


def draw_inputs(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    sizes = [(QUERIES, DIM), (KEYS, DIM), (KEYS, 5)]
    return [torch.randn(*LEAD, *size, dtype=dtype, requires_grad=True) for size in sizes]


PARTS = {
    "scaled dot": dict,
    "gaussian": lambda: {"score": Gaussian()},
    "prior": lambda: {"bias": Prior(torch.randn(KEYS, dtype=torch.float64, requires_grad=True))},
    "relative": lambda: {"bias": Relative(3, count=8, farthest=16).double()},
    "additive": lambda: {"score": Additive(DIM).double()},
    "laplacian": lambda: {"score": Laplacian()},
    "sparsemax": lambda: {"normalizer": Sparsemax()},
    "plus one": lambda: {"normalizer": SoftmaxPlusOne()},
}


# Every mask with three kinds of parts: the kernel's own, those in fused blocks, those in blocks of scores.
CASES = [
    (name, parts)
    for row, name in enumerate(make_masks())
    for column, parts in enumerate(PARTS)
    if (row + column) % 3 == 0
]


@pytest.mark.parametrize(("name", "parts"), CASES)
def test_gathered_blocks_agree_with_the_definition(name: str, parts: str) -> None:
    mask, chosen, inputs = make_masks()[name], PARTS[parts](), draw_inputs()
    fast = attend(*inputs, mask=mask, **chosen)
    slow = attend(*inputs, mask=mask, backend="eager", **chosen)
    learned = [tensor for part in chosen.values() for tensor in part.tensors() if tensor.requires_grad]
    upstream = torch.randn_like(slow.output)
    assert fast.plan.backend in ("local", "stream", "rows")
    assert fast.plan.facts.sparse
    torch.testing.assert_close(fast.output, slow.output, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(fast.weights.dense(), slow.weights.dense(), rtol=1e-10, atol=1e-10)
    got, expected = (torch.autograd.grad(a.output, (*inputs, *learned), upstream) for a in (fast, slow))
    torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-8)


def test_a_mask_with_a_batch_of_one_is_shared() -> None:
    query, key, value = (torch.randn(1, length, 3, dtype=torch.float64) for length in (554, 700, 700))
    mask = Causal() & Lengths(torch.tensor([210]))
    fast, slow = (attend(query, key, value, mask=mask, backend=name) for name in ("auto", "eager"))
    assert fast.plan.facts.sparse
    torch.testing.assert_close(fast.output, slow.output, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", make_masks())
def test_a_cover_has_every_key_that_its_queries_see(name: str) -> None:
    mask = make_masks()[name]
    rows = torch.randperm(QUERIES)[:36].view(-1, 4)
    seen = mask.table(QUERIES, KEYS)[..., rows, :].any(-2)
    assert not (seen & ~mask.cover(RowBlocks(rows, QUERIES, KEYS))).any()


@pytest.mark.parametrize("name", make_masks())
def test_a_full_cover_has_only_keys_that_all_of_its_queries_see(name: str) -> None:
    mask = make_masks()[name]
    rows = torch.arange(QUERIES - 1).view(-1, 4)
    seen = mask.table(QUERIES, KEYS)[..., rows, :].all(-2)
    fully = mask.cover_fully(RowBlocks(rows, QUERIES, KEYS))
    assert not (fully & ~seen).any()
    if name in ("documents", "blocks", "window and first keys"):
        assert torch.equal(fully, seen)


def test_blocks_whose_queries_see_the_same_keys_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = (torch.rand(9, 10) < 0.3).repeat_interleave(4, 0).repeat_interleave(4, 1)
    blocks = gather.list_blocks(Mask.keep(cells), 36, 40)
    assert all(block.full for block in blocks)
    monkeypatch.setattr(gather, "_build_tables", lambda *given: pytest.fail("a table was written out"))
    query, key, value = (torch.randn(length, DIM, dtype=torch.float64) for length in (36, 40, 40))
    fast, slow = (attend(query, key, value, mask=Mask.keep(cells), backend=name) for name in ("local", "eager"))
    torch.testing.assert_close(fast.output, slow.output, rtol=1e-10, atol=1e-10)


def test_a_query_that_sees_far_more_than_its_neighbors_is_kept_apart() -> None:
    rows = torch.zeros(QUERIES, 1, dtype=torch.bool).index_fill_(0, torch.tensor([5, 30]), True)
    cover = gather.cover_blocks(Window(1, 0) | Mask.keep(rows), QUERIES, KEYS)
    wide = [own.tolist() for own, count in zip(cover.rows, cover.counts, strict=True) if count == KEYS]
    assert wide == [[5, 30]]
    assert sorted(torch.cat(cover.rows).tolist()) == list(range(QUERIES))


SHARED = {
    "first keys": lambda: Lengths(torch.tensor(2)),
    "first keys, causally": lambda: Lengths(torch.tensor(3)) & Causal(),
    "keys at the end": lambda: Mask.keep_keys(torch.arange(KEYS) > KEYS - 3),
    "some of each head": lambda: Mask.keep_keys(torch.rand(3, KEYS) < 0.1),
    "some of each sequence": lambda: Lengths(torch.tensor([[1], [4]])) | Mask.keep_keys(torch.arange(KEYS) == 20),
    "a table": lambda: Mask.keep((torch.rand(QUERIES, KEYS) < 0.5) & (torch.arange(KEYS) % 11 == 3)),
}


@pytest.mark.parametrize(
    ("name", "queries"),
    [(name, queries) for name in SHARED for queries in (QUERIES, KEYS, 7) if name != "a table" or queries == QUERIES],
)
def test_few_keys_beside_a_window_are_joined_to_it(name: str, queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.compute.lowering.windows.SMALLEST", 4)
    monkeypatch.setattr(gather, "list_blocks", lambda *given: pytest.fail("keys were gathered"))
    mask, inputs = SHARED[name]() | Window(3, 1), draw_inputs()
    inputs[0] = torch.randn(*LEAD, queries, DIM, dtype=torch.float64, requires_grad=True)
    fast, slow = (attend(*inputs, mask=mask, backend=backend) for backend in ("local", "eager"))
    torch.testing.assert_close(fast.output, slow.output, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(fast.weights.dense(), slow.weights.dense(), rtol=1e-10, atol=1e-10)
    upstream = torch.randn_like(slow.output)
    got, expected = (torch.autograd.grad(a.output, inputs, upstream) for a in (fast, slow))
    torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["documents", "documents in any order", "window and first keys", "blocks"])
def test_few_keys_are_read(name: str) -> None:
    rows, cover = gather.cover_blocks(make_masks()[name], QUERIES, KEYS)
    assert sorted(torch.cat(rows).tolist()) == list(range(QUERIES))
    read = sum(len(own) * int(seen.sum()) for own, seen in zip(rows, cover, strict=True))
    assert read < 0.5 * QUERIES * KEYS


def test_second_derivatives_of_gathered_blocks() -> None:
    mask = make_masks()["window and first keys"]
    inputs = [tensor[0, 0, :7].detach().requires_grad_() for tensor in draw_inputs()]
    assert torch.autograd.gradgradcheck(lambda *qkv: attend(*qkv, mask=mask).output, inputs)


def test_hidden_content_is_never_read_by_gathered_blocks() -> None:
    mask, (query, key, value) = make_masks()["causal documents"], draw_inputs(torch.float32)
    plain = attend(query, key, value, mask=mask).output
    hidden = torch.arange(KEYS) >= 40  # no query sees it but the last
    broken = [tensor.masked_fill(hidden[:, None], math.nan) for tensor in (key, value)]
    rows = ~mask.table(QUERIES, KEYS)[:, 40]
    torch.testing.assert_close(attend(query, *broken, mask=mask).output[..., rows, :], plain[..., rows, :])


def test_the_plan_says_that_keys_are_gathered() -> None:
    explained = attend(*draw_inputs(), mask=make_masks()["documents"]).plan.explain()
    assert "blocks of queries see few of 41 keys, so only those are read" in explained
    assert "mask: the keys that a block of queries may see, gathered, because others are never read" in explained
