"""Test what a part claims about itself. Claims decide how a part is computed, so each false one is reported."""

import itertools
from collections.abc import Callable, Iterator

import torch

from regard.algebra import catalog
from regard.algebra.aggregates import Aggregate, AggregateResult
from regard.algebra.biases import Bias
from regard.algebra.catalog import Sizes
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer, Softmax
from regard.algebra.pairs import Pairs, RowBlocks
from regard.algebra.scores import Score
from regard.algebra.shapes import Tensor
from regard.algebra.terms import Term
from regard.compute.kernels import noise
from regard.compute.table_blocks import (
    Range,
    describe_block,
    differ,
    draw_pairs,
    expand_table,
    list_blocks,
    list_ranges,
    slice_block,
)
from regard.compute.verification import SMALL, VALUE, Part, cast_part, draw_inputs

FAILURES = (RuntimeError, IndexError, ValueError, TypeError)  # of tensors that do not fit


def find_false_claims(part: Part, *, sizes: Sizes = SMALL) -> Iterator[str]:
    """Return what is not true of a part, one sentence for each claim."""
    torch.default_generator.manual_seed(0)
    part = cast_part(part, torch.float64, jitter=0.1)
    if isinstance(part, Bias | Mask | Normalizer):
        part.check(sizes.lead, sizes.queries, sizes.keys)
    with torch.no_grad():
        for kind, find in FINDERS.items():
            if isinstance(part, kind):
                yield from find(part, sizes)


# ------------------------------------------------------------------------------------------------ scores
def _find_score_faults(score: Score, sizes: Sizes) -> Iterator[str]:
    """Yield unless the score of some queries and keys is a part of the score of all of them."""
    name, (query, key, _) = type(score).__name__, draw_inputs(sizes)
    whole = score(query, key)
    for start, stop in list_ranges(sizes.queries):
        if differ(score(query[..., start:stop, :], key), whole[..., start:stop, :]):
            yield f"{name}: the score of a query changes with the other queries"
            break
    for first, last in list_ranges(sizes.keys):
        if score.uses_key_positions and first:  # such a score is only called with keys from the first on
            continue
        if differ(score(query, key[..., first:last, :]), whole[..., first:last]):
            got = score.uses_key_positions
            yield f"{name}.uses_key_positions: got {got}, but the score of a key changes with the other keys"
            break
    yield from _find_head_faults(score, (query, key), lambda *tensors: score(*tensors))


# ------------------------------------------------------------------------------------------------ biases
def _find_bias_faults(bias: Bias, sizes: Sizes) -> Iterator[str]:
    """Yield unless the bias of a block is that part of the whole bias, and all its forms have the same numbers."""
    name, queries, keys = type(bias).__name__, sizes.queries, sizes.keys
    table = expand_table(bias(Pairs(queries, keys)), queries, keys)
    if bool(table.isnan().any()):
        yield f"{name}: a number is NaN"
    for rows, columns in list_blocks(queries, keys):
        true = slice_block(table, rows, columns)
        if differ(expand_table(bias(Pairs(queries, keys, rows=rows, columns=columns)), *true.shape[-2:]), true):
            yield f"{name}: the numbers of {describe_block(rows, columns)} change if they are asked for alone"
            break
    if bias.columnwise:
        one = expand_table(bias(Pairs(1, keys)), 1, keys)
        if differ(table, table[..., :1, :].expand_as(table)) or differ(one, table[..., :1, :]):
            yield f"{name}.columnwise: got True, but two queries are given different numbers for a key"
    for causal, shift in itertools.product((False, True), repeat=2):
        if bias.form(causal=causal, shift_invariant=shift, keys=keys) == "column":
            yield from _find_column_faults(bias, table, sizes, causal=causal, shift=shift)


def _find_column_faults(bias: Bias, table: Tensor, sizes: Sizes, *, causal: bool, shift: bool) -> Iterator[str]:
    """Yield unless one number for each key has the effect of the table under the mask and normalizer that allow it."""
    name, pairs = type(bias).__name__, Pairs(sizes.queries, sizes.keys)
    column = bias.column(pairs)
    if column.shape[-1] != sizes.keys:
        yield f"{name}.column: got {column.shape[-1]} numbers, expected one for each of {sizes.keys} keys"
        return
    gap = torch.where(column[..., None, :] == table, 0.0, column[..., None, :] - table)  # −inf − (−inf) is NaN
    seen = (pairs.column <= pairs.position) if causal else torch.ones(1, 1, dtype=torch.bool)
    high, low = torch.where(seen, gap, float("-inf")).amax(-1), torch.where(seen, gap, float("inf")).amin(-1)
    error = high - low if shift else torch.where(seen, gap, 0.0).abs().amax(-1)
    if not bool((error <= VALUE * table.abs().nan_to_num(0.0, 0.0).max().clamp_min(1.0)).all()):
        beside = f"causal={causal}, shift_invariant={shift}"
        yield f"{name}.form: got 'column' for {beside}, but the number of a key differs from query to query"
    for rows, columns in list_blocks(sizes.queries, sizes.keys):
        block = bias.column(Pairs(sizes.queries, sizes.keys, rows=rows, columns=columns))
        if differ(block, column[..., columns[0] : columns[1]]):
            yield f"{name}.column: the numbers of {describe_block(rows, columns)} change if they are asked for alone"
            return


# ------------------------------------------------------------------------------------------------ masks
def _find_mask_faults(mask: Mask, sizes: Sizes) -> Iterator[str]:
    """Yield unless a mask treats a pair alike in every block, and every key that it allows lies in its ranges."""
    name, queries, keys = type(mask).__name__, sizes.queries, sizes.keys
    table = mask.table(queries, keys)
    for start, stop in itertools.combinations(range(queries + 1), 2):
        seen, true = mask.allows(Pairs(queries, keys, rows=(start, stop))), table[..., start:stop, :]
        seen = expand_table(seen, stop - start, keys)
        if not torch.equal(seen, true):
            yield f"rows {start} … {stop - 1} of {name}: got {seen.tolist()}, expected {true.tolist()}"
            break
        first, last = mask.span(start, stop, queries, keys)
        outside = seen[..., [*range(first), *range(last, keys)]]
        if bool(outside.any()):
            yield f"outside the span of rows {start} … {stop - 1}: got {outside.tolist()}, expected no key of {name}"
            break
    for rows, columns in list_blocks(queries, keys):
        true = slice_block(table, rows, columns)
        block = mask.allows(Pairs(queries, keys, rows=rows, columns=columns))
        if not torch.equal(expand_table(block, *true.shape[-2:]), true):
            yield f"{name}: what is allowed in {describe_block(rows, columns)} changes if it is asked for alone"
            break
    yield from _find_mask_property_faults(mask, table, queries, keys)
    yield from _find_mask_lead_faults(mask, queries, keys)


def _find_mask_property_faults(mask: Mask, table: Tensor, queries: int, keys: int) -> Iterator[str]:
    name, pairs, most = type(mask).__name__, Pairs(queries, keys), int(table.sum(-1).max())
    if mask.causal and bool((table & (pairs.column > pairs.position)).any()):
        yield f"{name}.causal: got True, but a query sees a key after its own position"
    if mask.columnwise and not bool((table == table[..., :1, :]).all()):
        yield f"{name}.columnwise: got True, but two queries see different keys"
    if mask.width is not None and most > mask.width:
        yield f"{name}.width: got {mask.width}, but a query sees {most} keys"
    for count in (1, queries) if not mask.tensors() else (queries,):
        if mask.allows_all(count) and not bool(mask.table(count, keys).all()):
            yield f"{name}.allows_all: got True for {count} of them, but a query does not see every key"
            break
    rows = torch.arange(queries + 1).clamp(max=queries - 1)[: queries + queries % 2].view(-1, 2)
    cover = mask.cover(RowBlocks(rows, queries, keys))
    if bool((table[..., rows, :].any(-2) & ~cover).any()):
        yield f"{name}.cover: got False for a key that a query of the block sees"
    if bool((mask.cover_fully(RowBlocks(rows, queries, keys)) & ~table[..., rows, :].all(-2)).any()):
        yield f"{name}.cover_fully: got True for a key that a query of the block does not see"
    visible = mask.find_visible_keys(keys)
    if visible is not None and bool((table.any(-2) & ~visible).any()):
        yield f"{name}.find_visible_keys: got False for a key that a query sees"


def _find_mask_lead_faults(mask: Mask, queries: int, keys: int) -> Iterator[str]:
    """Return the faults of the two methods by which layers put an axis for heads into a mask."""
    for part in mask.leaves():
        name, table = type(part).__name__, part.table(queries, keys)
        if part.lead != tuple(table.shape[:-2]):
            yield f"{name}.lead: got {part.lead}, but its table has the lead axes {tuple(table.shape[:-2])}"
        elif part.lead and not torch.equal(part.add_head_axis().table(queries, keys), table.unsqueeze(-3)):
            yield f"{name}.add_head_axis: got another table than its own with one more lead axis"


# ------------------------------------------------------------------------------------------------ normalizers
def _find_normalizer_faults(normalizer: Normalizer, sizes: Sizes) -> Iterator[str]:
    name, pairs = type(normalizer).__name__, Pairs(sizes.queries, sizes.keys)
    scores = torch.randn(*sizes.lead, sizes.queries, sizes.keys, dtype=torch.float64)
    everything = torch.ones(sizes.queries, sizes.keys, dtype=torch.bool)
    tables = {mask: make(sizes).table(sizes.queries, sizes.keys) for mask, make in catalog.MASKS.items()}
    yield from itertools.islice(_find_weight_faults(normalizer, scores, tables), 1)
    whole = normalizer(scores, everything, pairs)
    if differ(normalizer(scores, None, pairs), whole):
        yield f"{name}: the weights with allowed=None are not those with every pair allowed"
    shifted = scores + torch.randn_like(scores[..., :1])
    if normalizer.shift_invariant and differ(normalizer(shifted, everything, pairs), whole):
        yield f"{name}.shift_invariant: got True, but a shift changes weights"

    def weigh(allowed: Tensor, rows: Range, columns: Range) -> Tensor:
        pairs = Pairs(sizes.queries, sizes.keys, rows=rows, columns=columns)
        weights: Tensor = normalizer(slice_block(scores, rows, columns), slice_block(allowed, rows, columns), pairs)
        return weights

    if normalizer.form != "sequential":
        alone = f"{name}.form: got {normalizer.form!r}, but the weights of a row change with the other rows"
        yield from _find_block_faults(name, weigh, sizes, alone=alone, whole_rows=normalizer.whole_rows)
    yield from _find_head_faults(normalizer, (scores,), lambda some: normalizer(some, everything, pairs))


def _find_weight_faults(normalizer: Normalizer, scores: Tensor, tables: dict[str, Tensor]) -> Iterator[str]:
    """Yield unless weights are finite, not negative, and 0 where a pair is masked, whatever its score."""
    name, pairs = type(normalizer).__name__, Pairs(*scores.shape[-2:])
    for mask, allowed in tables.items():
        weights = normalizer(torch.where(allowed, scores, float("nan")), allowed, pairs)
        hidden = float(weights[~allowed.expand_as(weights)].abs().sum())
        if hidden != 0.0:
            yield f"masked weights: got {hidden} of {name} under {mask}, expected 0.0"
        if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
            yield f"weights of {name} are negative or not finite under {mask}"


# ------------------------------------------------------------------------------------------------ aggregates
def _find_aggregate_faults(aggregate: Aggregate, sizes: Sizes) -> Iterator[str]:
    name, pairs = type(aggregate).__name__, Pairs(sizes.queries, sizes.keys)
    scores, allowed = torch.randn(*sizes.lead, sizes.queries, sizes.keys, dtype=torch.float64), draw_pairs(sizes)
    weights = Softmax()(scores, allowed, pairs)
    seed = noise.draw_seed() if aggregate.random else None
    try:
        choice: AggregateResult = aggregate(weights, pairs, seed)
    except FAILURES as error:
        if aggregate.random:
            raise
        yield f"{name}.random: got False, but it fails without a seed ({error})"
        return
    yield from _find_result_faults(aggregate, choice, weights)
    again = aggregate(weights, pairs, seed)
    if not torch.equal(again.weights, choice.weights):
        own = "draws numbers that do not follow from the seed" if aggregate.random else "chooses differently each time"
        yield f"{name}.random: got {aggregate.random}, but it {own}"
        return

    def choose(allowed: Tensor, rows: Range, columns: Range) -> Tensor:
        weights = slice_block(Softmax()(scores, allowed, pairs), rows, columns)
        chosen: AggregateResult = aggregate(weights, Pairs(sizes.queries, sizes.keys, rows=rows, columns=columns), seed)
        return chosen.weights

    alone = f"{name}: the choice of a row changes with the other rows"
    yield from _find_block_faults(name, choose, sizes, alone=alone, whole_rows=aggregate.whole_rows)
    yield from _find_head_faults(aggregate, (weights,), lambda some: aggregate(some, pairs, seed).weights)


def _find_result_faults(aggregate: Aggregate, choice: AggregateResult, weights: Tensor) -> Iterator[str]:
    """Yield unless a choice has the shape of the weights, is 0 where they are, and its log-probability is finite."""
    name, found = type(aggregate).__name__, choice.weights
    if found.shape != weights.shape:
        yield f"weights of {name}: got shape {tuple(found.shape)}, expected {tuple(weights.shape)}"
        return
    if not bool(torch.isfinite(found).all()):
        yield f"weights of {name} are not finite"
    elif bool((found[weights == 0] != 0).any()):
        yield f"weights of {name}: got some for a pair that had none, which may be a hidden one"
    if aggregate.form == "soft" and differ(found, weights):
        yield f"{name}.form: got 'soft', but it changes the weights"
    logarithm = choice.log_prob
    if logarithm is not None and logarithm.shape != weights.shape[:-1]:
        yield f"log_prob of {name}: got shape {tuple(logarithm.shape)}, expected {tuple(weights.shape[:-1])}"
    elif logarithm is not None and not bool(torch.isfinite(logarithm).all()):
        yield f"log_prob of {name} is not finite"


# ------------------------------------------------------------------------------------------------ of several
def _find_block_faults(
    name: str, weigh: Callable[[Tensor, Range, Range], Tensor], sizes: Sizes, *, alone: str, whole_rows: bool
) -> Iterator[str]:
    """Yield unless rows are independent, and columns too if the part does not ask for whole rows."""
    rows, columns, allowed = (0, sizes.queries), (0, sizes.keys), draw_pairs(sizes)
    whole = weigh(allowed, rows, columns)
    if any(
        differ(weigh(allowed, some, columns), slice_block(whole, some, columns)) for some in list_ranges(sizes.queries)
    ):
        yield alone
    for some in () if whole_rows else list_ranges(sizes.keys):
        index = torch.arange(sizes.keys)
        within = allowed & (index >= some[0]) & (index < some[1])
        if differ(weigh(within, rows, some), slice_block(weigh(within, rows, columns), rows, some)):
            yield f"{name}.whole_rows: got False, but weights change if columns that are hidden are left out"
            return


def _find_head_faults(part: Term, tensors: tuple[Tensor, ...], compute: Callable[..., Tensor]) -> Iterator[str]:
    """Yield unless a part that claims to treat heads alike gives the same for heads on two axes, by groups."""
    blind = all(inner.head_blind for inner in part.modules() if isinstance(inner, Term))
    if not blind or part.tensors() or tensors[0].dim() < 3:
        return
    whole = compute(*tensors)
    for dim in (-3, -4):  # groups of one head each, and one group of all
        try:
            found = compute(*(tensor.unsqueeze(dim) for tensor in tensors))
        except FAILURES:
            found = None
        if found is None or differ(found, whole.unsqueeze(dim)):
            yield f"{type(part).__name__}.head_blind: got True, but heads that are in groups get other numbers"
            return


FINDERS: dict[type, Callable[..., Iterator[str]]] = {
    Score: _find_score_faults,
    Bias: _find_bias_faults,
    Mask: _find_mask_faults,
    Normalizer: _find_normalizer_faults,
    Aggregate: _find_aggregate_faults,
}
