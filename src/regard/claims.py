"""What a part says of itself, tried out. Claims decide how a part is computed, so each false one is named."""

import itertools
from collections.abc import Callable, Iterator

import torch

from regard import catalog
from regard.aggregates import Choice, Reading
from regard.biases import Bias
from regard.catalog import Sizes
from regard.masks import Mask
from regard.normalizers import Normalizer, Softmax
from regard.numerics import noise
from regard.pairs import Pairs
from regard.scores import Score
from regard.shapes import Tensor
from regard.terms import Term
from regard.verify import SMALL, VALUE, Part, cast_part, inputs

Range = tuple[int, int]
FAILURES = (RuntimeError, IndexError, ValueError, TypeError)  # of tensors that do not fit
KEPT = 0.7  # share of the pairs that are allowed


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
def _of_score(score: Score, sizes: Sizes) -> Iterator[str]:
    """A score of some queries and keys is that of all of them, cut."""
    name, (query, key, _) = type(score).__name__, inputs(sizes)
    whole = score(query, key)
    for start, stop in ranges(sizes.queries):
        if differ(score(query[..., start:stop, :], key), whole[..., start:stop, :]):
            yield f"{name}: the score of a query changes with the other queries"
            break
    for first, last in ranges(sizes.keys):
        if score.counts_keys and first:  # then it is given the keys from the first on
            continue
        if differ(score(query, key[..., first:last, :]), whole[..., first:last]):
            yield f"{name}.counts_keys: got {score.counts_keys}, but the score of a key changes with the other keys"
            break
    yield from _of_heads(score, (query, key), lambda *tensors: score(*tensors))


# ------------------------------------------------------------------------------------------------ biases
def _of_bias(bias: Bias, sizes: Sizes) -> Iterator[str]:
    """A bias of a block is the block of the bias, and its forms are the same numbers."""
    name, queries, keys = type(bias).__name__, sizes.queries, sizes.keys
    table = wide(bias(Pairs(queries, keys)), queries, keys)
    if bool(table.isnan().any()):
        yield f"{name}: a number is NaN"
    for rows, columns in blocks(queries, keys):
        true = cut(table, rows, columns)
        if differ(wide(bias(Pairs(queries, keys, rows=rows, columns=columns)), *true.shape[-2:]), true):
            yield f"{name}: the numbers of {words(rows, columns)} change if they are asked for alone"
            break
    if bias.columnwise:
        one = wide(bias(Pairs(1, keys)), 1, keys)
        if differ(table, table[..., :1, :].expand_as(table)) or differ(one, table[..., :1, :]):
            yield f"{name}.columnwise: got True, but two queries are given different numbers for a key"
    for causal, shift in itertools.product((False, True), repeat=2):
        if bias.form(causal=causal, shift_invariant=shift, keys=keys) == "column":
            yield from _of_column(bias, table, sizes, causal=causal, shift=shift)


def _of_column(bias: Bias, table: Tensor, sizes: Sizes, *, causal: bool, shift: bool) -> Iterator[str]:
    """A number for each key says what the table says, as far as mask and normalizer can tell."""
    name, pairs = type(bias).__name__, Pairs(sizes.queries, sizes.keys)
    column = bias.column(pairs)
    if column.shape[-1] != sizes.keys:
        yield f"{name}.column: got {column.shape[-1]} numbers, expected one for each of {sizes.keys} keys"
        return
    gap = torch.where(column[..., None, :] == table, 0.0, column[..., None, :] - table)  # −inf − (−inf) is nothing
    seen = (pairs.column <= pairs.position) if causal else torch.ones(1, 1, dtype=torch.bool)
    high, low = torch.where(seen, gap, float("-inf")).amax(-1), torch.where(seen, gap, float("inf")).amin(-1)
    error = high - low if shift else torch.where(seen, gap, 0.0).abs().amax(-1)
    if not bool((error <= VALUE * table.abs().nan_to_num(0.0, 0.0).max().clamp_min(1.0)).all()):
        beside = f"causal={causal}, shift_invariant={shift}"
        yield f"{name}.form: got 'column' for {beside}, but the number of a key differs from query to query"
    for rows, columns in blocks(sizes.queries, sizes.keys):
        block = bias.column(Pairs(sizes.queries, sizes.keys, rows=rows, columns=columns))
        if differ(block, column[..., columns[0] : columns[1]]):
            yield f"{name}.column: the numbers of {words(rows, columns)} change if they are asked for alone"
            return


# ------------------------------------------------------------------------------------------------ masks
def _of_mask(mask: Mask, sizes: Sizes) -> Iterator[str]:
    """A mask says the same of a pair whichever block asks, and every key that it allows lies in its ranges."""
    name, queries, keys = type(mask).__name__, sizes.queries, sizes.keys
    table = mask.table(queries, keys)
    for start, stop in itertools.combinations(range(queries + 1), 2):
        seen, true = mask.allowed(Pairs(queries, keys, rows=(start, stop))), table[..., start:stop, :]
        seen = wide(seen, stop - start, keys)
        if not torch.equal(seen, true):
            yield f"rows {start} … {stop - 1} of {name}: got {seen.tolist()}, expected {true.tolist()}"
            break
        first, last = mask.span(start, stop, queries, keys)
        outside = seen[..., [*range(first), *range(last, keys)]]
        if bool(outside.any()):
            yield f"outside the span of rows {start} … {stop - 1}: got {outside.tolist()}, expected no key of {name}"
            break
    for rows, columns in blocks(queries, keys):
        true = cut(table, rows, columns)
        block = mask.allowed(Pairs(queries, keys, rows=rows, columns=columns))
        if not torch.equal(wide(block, *true.shape[-2:]), true):
            yield f"{name}: what is allowed in {words(rows, columns)} changes if it is asked for alone"
            break
    yield from _of_properties(mask, table, queries, keys)
    yield from _of_lead(mask, queries, keys)


def _of_properties(mask: Mask, table: Tensor, queries: int, keys: int) -> Iterator[str]:
    name, pairs, most = type(mask).__name__, Pairs(queries, keys), int(table.sum(-1).max())
    if mask.causal and bool((table & (pairs.column > pairs.position)).any()):
        yield f"{name}.causal: got True, but a query sees a key after its own position"
    if mask.columnwise and not bool((table == table[..., :1, :]).all()):
        yield f"{name}.columnwise: got True, but two queries see different keys"
    if mask.width is not None and most > mask.width:
        yield f"{name}.width: got {mask.width}, but a query sees {most} keys"
    for count in (1, queries) if not mask.tensors() else (queries,):
        if mask.free(count) and not bool(mask.table(count, keys).all()):
            yield f"{name}.free: got True for {count} of them, but a query does not see every key"
            break
    visible = mask.visible(keys)
    if visible is not None and bool((table.any(-2) & ~visible).any()):
        yield f"{name}.visible: got False for a key that a query sees"


def _of_lead(mask: Mask, queries: int, keys: int) -> Iterator[str]:
    """Layers put an axis for heads into a mask by these."""
    for part in mask.leaves():
        name, table = type(part).__name__, part.table(queries, keys)
        if part.lead != tuple(table.shape[:-2]):
            yield f"{name}.lead: got {part.lead}, but its table has the lead axes {tuple(table.shape[:-2])}"
        elif part.lead and not torch.equal(part.over_heads().table(queries, keys), table.unsqueeze(-3)):
            yield f"{name}.over_heads: got another table than its own with one more lead axis"


# ------------------------------------------------------------------------------------------------ normalizers
def _of_normalizer(normalizer: Normalizer, sizes: Sizes) -> Iterator[str]:
    name, pairs = type(normalizer).__name__, Pairs(sizes.queries, sizes.keys)
    scores = torch.randn(*sizes.lead, sizes.queries, sizes.keys, dtype=torch.float64)
    everything = torch.ones(sizes.queries, sizes.keys, dtype=torch.bool)
    tables = {mask: make(sizes).table(sizes.queries, sizes.keys) for mask, make in catalog.MASKS.items()}
    yield from itertools.islice(_of_weights(normalizer, scores, tables), 1)
    whole = normalizer(scores, everything, pairs)
    if differ(normalizer(scores, None, pairs), whole):
        yield f"{name}: the weights with allowed=None are not those with every pair allowed"
    shifted = scores + torch.randn_like(scores[..., :1])
    if normalizer.shift_invariant and differ(normalizer(shifted, everything, pairs), whole):
        yield f"{name}.shift_invariant: got True, but a shift changes weights"

    def weigh(allowed: Tensor, rows: Range, columns: Range) -> Tensor:
        pairs = Pairs(sizes.queries, sizes.keys, rows=rows, columns=columns)
        weights: Tensor = normalizer(cut(scores, rows, columns), cut(allowed, rows, columns), pairs)
        return weights

    if normalizer.form != "sequential":
        alone = f"{name}.form: got {normalizer.form!r}, but the weights of a row change with the other rows"
        yield from _of_blocks(name, weigh, sizes, alone=alone, whole_rows=normalizer.whole_rows)
    yield from _of_heads(normalizer, (scores,), lambda some: normalizer(some, everything, pairs))


def _of_weights(normalizer: Normalizer, scores: Tensor, tables: dict[str, Tensor]) -> Iterator[str]:
    """Weights are finite and not negative, and what is masked weighs nothing, whatever its score."""
    name, pairs = type(normalizer).__name__, Pairs(*scores.shape[-2:])
    for mask, allowed in tables.items():
        weights = normalizer(torch.where(allowed, scores, float("nan")), allowed, pairs)
        hidden = float(weights[~allowed.expand_as(weights)].abs().sum())
        if hidden != 0.0:
            yield f"masked weights: got {hidden} of {name} under {mask}, expected 0.0"
        if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
            yield f"weights of {name} are negative or not finite under {mask}"


# ------------------------------------------------------------------------------------------------ aggregates
def _of_aggregate(aggregate: Reading, sizes: Sizes) -> Iterator[str]:
    name, pairs = type(aggregate).__name__, Pairs(sizes.queries, sizes.keys)
    scores, allowed = torch.randn(*sizes.lead, sizes.queries, sizes.keys, dtype=torch.float64), some_pairs(sizes)
    weights = Softmax()(scores, allowed, pairs)
    seed = noise.draw_seed() if aggregate.random else None
    try:
        choice: Choice = aggregate(weights, pairs, seed)
    except FAILURES as error:
        if aggregate.random:
            raise
        yield f"{name}.random: got False, but it fails without a seed ({error})"
        return
    yield from _of_choice(aggregate, choice, weights)
    again = aggregate(weights, pairs, seed)
    if not torch.equal(again.weights, choice.weights):
        own = "draws numbers that do not follow from the seed" if aggregate.random else "chooses differently each time"
        yield f"{name}.random: got {aggregate.random}, but it {own}"
        return

    def choose(allowed: Tensor, rows: Range, columns: Range) -> Tensor:
        weights = cut(Softmax()(scores, allowed, pairs), rows, columns)
        chosen: Choice = aggregate(weights, Pairs(sizes.queries, sizes.keys, rows=rows, columns=columns), seed)
        return chosen.weights

    alone = f"{name}: the choice of a row changes with the other rows"
    yield from _of_blocks(name, choose, sizes, alone=alone, whole_rows=aggregate.whole_rows)
    yield from _of_heads(aggregate, (weights,), lambda some: aggregate(some, pairs, seed).weights)


def _of_choice(aggregate: Reading, choice: Choice, weights: Tensor) -> Iterator[str]:
    """A choice has the shape of the weights and gives none to what had none; a log-probability is a number."""
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
def _of_blocks(
    name: str, weigh: Callable[[Tensor, Range, Range], Tensor], sizes: Sizes, *, alone: str, whole_rows: bool
) -> Iterator[str]:
    """Rows stand alone; and a part that does not ask for whole rows says the same of fewer columns."""
    rows, columns, allowed = (0, sizes.queries), (0, sizes.keys), some_pairs(sizes)
    whole = weigh(allowed, rows, columns)
    if any(differ(weigh(allowed, some, columns), cut(whole, some, columns)) for some in ranges(sizes.queries)):
        yield alone
    for some in () if whole_rows else ranges(sizes.keys):
        index = torch.arange(sizes.keys)
        within = allowed & (index >= some[0]) & (index < some[1])
        if differ(weigh(within, rows, some), cut(weigh(within, rows, columns), rows, some)):
            yield f"{name}.whole_rows: got False, but weights change if columns that are hidden are left out"
            return


def _of_heads(part: Term, tensors: tuple[Tensor, ...], compute: Callable[..., Tensor]) -> Iterator[str]:
    """Heads on two axes, by groups, are the same heads to a part that is blind to them."""
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
    Score: _of_score,
    Bias: _of_bias,
    Mask: _of_mask,
    Normalizer: _of_normalizer,
    Reading: _of_aggregate,
}


def ranges(count: int) -> list[Range]:
    """Return some ranges of indices: the first and last alone, halves, and one in the middle.

    >>> ranges(7)
    [(0, 1), (0, 3), (2, 5), (3, 7), (6, 7)]
    """
    half = count // 2
    found = {(0, 1), (0, half), (count // 3, count - count // 3), (half, count), (count - 1, count)}
    return sorted((start, stop) for start, stop in found if start < stop)


def blocks(queries: int, keys: int) -> list[tuple[Range, Range]]:
    """Return some blocks of a table."""
    return list(itertools.product(ranges(queries), ranges(keys)))


def some_pairs(sizes: Sizes) -> Tensor:
    """Return random pairs, with a first row that is empty."""
    generator = torch.Generator().manual_seed(4)
    allowed = torch.rand(sizes.queries, sizes.keys, generator=generator) < KEPT
    allowed[0] = False
    return allowed


def cut(table: Tensor, rows: Range, columns: Range) -> Tensor:
    """Return a block of a table."""
    return table[..., rows[0] : rows[1], columns[0] : columns[1]]


def wide(table: Tensor, rows: int, columns: int) -> Tensor:
    """Return a table with the axes of queries and keys written out."""
    return table.expand(*table.shape[:-2], rows, columns)


def words(rows: Range, columns: Range) -> str:
    """Return a block in words."""
    return f"rows {rows[0]} … {rows[1] - 1} and columns {columns[0]} … {columns[1] - 1}"


def differ(found: Tensor, true: Tensor) -> bool:
    """Return whether two tables differ by more than rounding; two that are infinite at the same pair do not."""
    if found.shape != true.shape or not true.numel():
        return found.shape != true.shape
    gap = torch.where(found == true, 0.0, found - true).abs()
    return not bool((gap <= VALUE * true.abs().nan_to_num(1.0, 1.0).max().clamp_min(1.0)).all())
