"""Every code path against the definition in float64: values and all gradients."""

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import torch

from regard import catalog
from regard.aggregates import Reading
from regard.backends import RUNS, Run
from regard.biases import Bias
from regard.catalog import Sizes
from regard.definition import weigh
from regard.errors import wrong, wrong_kind
from regard.lowering import BACKENDS, Backend
from regard.lowering.rules import REFUSALS
from regard.masks import Mask
from regard.normalizers import Normalizer
from regard.numerics import native, noise
from regard.operator import Attended, attend
from regard.pairs import Pairs
from regard.parts import Facts, Parts
from regard.scores import Score
from regard.shapes import Tensor, describe

SEED = 2  # of every random reading and of dropout
VALUE, GRADIENT = 1e-10, 1e-8  # what float64 must reach, relative to the size of the numbers
SMALL = Sizes(query=5, key=5, value=3, lead=(2, 3), queries=7, keys=11)
WITHOUT_GRADIENT: tuple[Backend, ...] = ("few",)  # paths of who asks for none
Leads = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # of queries, keys and values; they broadcast
FAMILIES = ("score", "bias", "mask", "normalizer", "reading")
FIELDS = Parts._fields
KINDS: tuple[type, ...] = (Score, Bias, Mask, Normalizer, Reading)
Part = Score | Bias | Mask | Normalizer | Reading
AnyPart = TypeVar("AnyPart")


class Case(NamedTuple):
    """One combination of the catalog, by name."""

    score: str
    bias: str
    mask: str
    normalizer: str
    reading: str

    def __str__(self) -> str:
        return " × ".join(self)


class Error(NamedTuple):
    """The worst differences of one path from the definition, relative to the size of the numbers."""

    case: Case
    backend: Backend
    value: float
    gradient: float

    @property
    def right(self) -> bool:
        """Whether both are small enough. NaN is not."""
        return self.value <= VALUE and self.gradient <= GRADIENT


PLAIN = Case("dot", "none", "full", "softmax", "soft")
LONG = SMALL._replace(queries=150, keys=160)  # of which a window makes three blocks
BLOCKS = (
    Case("dot", "none", "window", "softmax", "soft"),
    Case("laplacian", "alibi", "window", "softmax", "soft"),
    Case("scaled-dot", "prior", "causal-window", "sparsemax", "soft"),
    Case("dot", "none", "causal-window", "sigmoid", "argmax"),
)
SOME_MASKS = ["full", "causal", "causal-window", "window", "lengths", "table"]
# What a part of each family is tried beside: all that decides how it is computed.
BESIDE: Mapping[str, Mapping[str, list[str]]] = {
    "score": {
        "bias": list(catalog.BIASES),
        "mask": list(catalog.MASKS),
        "normalizer": list(catalog.NORMALIZERS),
        "reading": ["soft", "argmax"],
    },
    "bias": {
        "score": ["dot", "additive"],
        "mask": SOME_MASKS,
        "normalizer": ["softmax", "tempered", "softmax-plus-one", "sparsemax", "sigmoid", "local-p"],
        "reading": ["soft", "argmax"],
    },
    "mask": {
        "score": ["dot", "additive"],
        "bias": ["none", "alibi"],
        "normalizer": list(catalog.NORMALIZERS),
        "reading": ["soft"],
    },
    "normalizer": {
        "score": ["dot", "additive"],
        "bias": ["none", "prior", "alibi"],
        "mask": list(catalog.MASKS),
        "reading": ["soft"],
    },
    "reading": {
        "score": ["dot", "additive"],
        "bias": ["none", "prior"],
        "mask": SOME_MASKS,
        "normalizer": ["softmax", "sparsemax", "sigmoid", "monotonic"],
    },
}


def build(case: Case, sizes: Sizes, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> Parts:
    """The parts of a case, their parameters moved off their starting values so that no gradient is zero by symmetry."""
    torch.default_generator.manual_seed(seed)
    parts = Parts(
        catalog.SCORES[case.score](sizes),
        catalog.BIASES[case.bias](sizes),
        catalog.MASKS[case.mask](sizes),
        catalog.NORMALIZERS[case.normalizer](sizes),
        catalog.READINGS[case.reading](),
    )
    for part in parts:
        if isinstance(part, torch.nn.Module):
            part.to(dtype)
            move_loose(part, dtype)
    return parts


def move_loose(part: torch.nn.Module, dtype: torch.dtype) -> None:
    """Tensors that are no parameters, in the dtype of the check and with a gradient."""
    for parameter in part.parameters():
        parameter.data.add_(0.1 * torch.rand_like(parameter))
    for name, tensor in [*vars(part).items()]:
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            setattr(part, name, tensor.to(dtype).detach().requires_grad_())


def cast_parts(parts: Parts, dtype: torch.dtype, *, jitter: float = 0.0) -> Parts:
    """Return a copy of the parts with every float tensor in `dtype`; all but buffers want a gradient.

    `jitter` is the size of the random numbers that are added to parameters, so that none stays at its starting value.
    """
    parts = copy.deepcopy(parts)
    for part in parts:
        _cast_tensors(part, dtype, jitter)
    return parts


def cast_part(part: AnyPart, dtype: torch.dtype, *, jitter: float = 0.0) -> AnyPart:
    """Return a copy of one part, cast as `cast_parts` casts all of them."""
    part = copy.deepcopy(part)
    _cast_tensors(part, dtype, jitter)
    return part


def _cast_tensors(part: object, dtype: torch.dtype, jitter: float) -> None:
    for module in part.modules() if isinstance(part, torch.nn.Module) else ():
        for parameter in module.parameters(recurse=False):
            parameter.data = (parameter.data + jitter * torch.rand_like(parameter)).to(dtype)
        for names, learned in ((vars(module), True), (module._buffers, False)):
            loose = [(name, tensor) for name, tensor in names.items() if isinstance(tensor, Tensor)]
            floats = [(name, tensor.detach()) for name, tensor in loose if tensor.is_floating_point()]
            names.update({name: tensor.to(dtype).requires_grad_(learned) for name, tensor in floats})


def inputs(
    sizes: Sizes, *, dtype: torch.dtype = torch.float64, seed: int = 1, leads: Leads | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values that want a gradient; with leading axes of their own, if such are named."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (sizes.queries, sizes.query), (sizes.keys, sizes.key), (sizes.keys, sizes.value)
    whole = zip(leads or (sizes.lead,) * 3, shapes, strict=True)
    drawn = [torch.randn(*lead, *shape, generator=generator, dtype=torch.float64) for lead, shape in whole]
    query, key, value = (tensor.to(dtype).requires_grad_() for tensor in drawn)
    return query, key, value


def run(parts: Parts, tensors: Sequence[Tensor], backend: Backend, *, dropout: float = 0.0) -> Attended:
    """One call, from a fixed state of the random numbers."""
    torch.default_generator.manual_seed(SEED)
    score, bias, mask, normalizer, aggregate = parts
    return attend(
        *tensors,
        score=score,
        bias=bias,
        mask=mask,
        normalizer=normalizer,
        aggregate=aggregate,
        dropout=dropout,
        backend=backend,
    )


def gradients(parts: Parts, tensors: Sequence[Tensor], attended: Attended) -> list[Tensor | None]:
    """Of a fixed mixture of output and log-probability, to every input and every tensor of the parts."""
    generator = torch.Generator().manual_seed(3)
    loss = _mixed(attended.output, generator)
    if attended.log_prob is not None:
        loss = loss + _mixed(attended.log_prob, generator)
    wanted = [tensor for tensor in (*tensors, *parts.tensors()) if tensor.requires_grad]
    if not loss.requires_grad:
        return [None] * len(wanted)
    return list(torch.autograd.grad(loss, wanted, allow_unused=True))


def _mixed(tensor: Tensor, generator: torch.Generator) -> Tensor:
    mixture = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    return (tensor * mixture.to(tensor.dtype)).sum()


def difference(found: Tensor | None, true: Tensor | None) -> float:
    """The largest difference over the largest number (at least one); a missing gradient counts as zeros."""
    if found is None and true is None:
        return 0.0
    found = torch.zeros_like(true) if found is None else found  # type: ignore[arg-type]
    true = torch.zeros_like(found) if true is None else true
    if found.shape != true.shape:
        return float("inf")
    found, true = found.detach().double(), true.detach().double()
    return float((found - true).abs().max() / true.abs().max().clamp_min(1.0))


def worst(differences: Iterable[float]) -> float:
    """The largest; NaN where there is one, which `max` would pass over.

    >>> worst([0.0, float("nan"), 1.0])
    nan
    """
    return max(differences, key=lambda number: (number != number, number), default=0.0)


class Truth(NamedTuple):
    """What the definition says of one case."""

    attended: Attended
    weights: Tensor
    gradients: list[Tensor | None]


def truth(parts: Parts, tensors: Sequence[Tensor], *, dropout: float = 0.0) -> Truth:
    """The definition: the backend `eager`, and the weights from the formula of the score itself."""
    attended = run(parts, tensors, "eager", dropout=dropout)
    query, key, _ = tensors
    torch.default_generator.manual_seed(SEED)
    seed = noise.draw_seed(query.device)
    with torch.no_grad():
        weights = weigh(parts, parts.score, query, key, Pairs(query.shape[-2], key.shape[-2]), seed=seed).weights
    return Truth(attended, weights, gradients(parts, tensors, attended))


def compare(case: Case, parts: Parts, sizes: Sizes, *, dropout: float = 0.0) -> Iterator[Error]:
    """Every path that can compute these parts against the definition, which is computed once."""
    tensors = inputs(sizes)
    true = truth(parts, tensors, dropout=dropout)
    for backend in able(parts, sizes, dropout=dropout):
        found = run(parts, tensors, backend, dropout=dropout)
        slopes = zip(gradients(parts, tensors, found), true.gradients, strict=True)
        yield Error(case, backend, value_error(found, true), worst(difference(a, b) for a, b in slopes))
    with torch.no_grad():
        only = [backend for backend in able(parts, sizes, dropout=dropout) if backend in WITHOUT_GRADIENT]
        errors = [value_error(run(parts, tensors, backend, dropout=dropout), true) for backend in only]
    yield from (Error(case, backend, error, 0.0) for backend, error in zip(only, errors, strict=True))


def value_error(found: Attended, true: Truth) -> float:
    """The worst difference of output, log-probability and weights."""
    everything = slice(None)
    return worst(
        (
            difference(found.output, true.attended.output),
            difference(found.log_prob, true.attended.log_prob),
            difference(found.weights.tile(everything, everything), true.weights),
        )
    )


def able(parts: Parts, sizes: Sizes, *, dropout: float = 0.0, dtype: torch.dtype = torch.float64) -> list[Backend]:
    """The backends besides eager that can compute these parts, one for each code path (`rows` runs as `stream`)."""
    length, grad = (sizes.queries, sizes.keys), torch.is_grad_enabled()
    native.library(build=False)  # as the operator does: what is there decides who is able
    there = native.state()
    facts = Facts(sizes.lead, *length, sizes.query, sizes.value, dtype, dropout=dropout > 0, grad=grad, native=there)
    paths: dict[Run, Backend] = {}
    for backend in BACKENDS:
        if backend != "eager" and REFUSALS[backend](parts, facts) is None:
            paths.setdefault(RUNS[backend], backend)
    return list(paths.values())


def product() -> Iterator[Case]:
    """Every combination of the catalog."""
    for names in itertools.product(*(catalog.FAMILIES[family] for family in FAMILIES)):
        yield Case(*names)


def pairwise(families: Sequence[Sequence[str]] | None = None) -> list[Case]:
    """A few combinations in which every two names of different families meet at least once.

    Greedy: each new case starts from a pair that has not met and takes, family by family, the name that brings the
    most new meetings.
    """
    names = [list(f) for f in families or [list(catalog.FAMILIES[family]) for family in FAMILIES]]
    missing = {
        frozenset({(i, a), (j, b)})
        for i, j in itertools.combinations(range(len(names)), 2)
        for a in names[i]
        for b in names[j]
    }
    cases = []
    while missing:
        chosen = dict(sorted(min(missing, key=sorted)))
        for index in [i for i in range(len(names)) if i not in chosen]:
            chosen[index] = max(names[index], key=lambda name: _new(missing, chosen, index, name))
        met = {frozenset(pair) for pair in itertools.combinations(sorted(chosen.items()), 2)}
        missing -= met
        cases.append(Case(*(chosen[i] for i in range(len(names)))))
    return cases


def _new(missing: set[frozenset[tuple[int, str]]], chosen: Mapping[int, str], index: int, name: str) -> int:
    return sum(frozenset({(index, name), item}) in missing for item in chosen.items())


def verify(cases: Sequence[Case] | None = None, *, sizes: Sizes = SMALL) -> Iterator[Error]:
    """Every path that these cases can take, one after the other."""
    for case in pairwise() if cases is None else cases:
        yield from compare(case, build(case, sizes), sizes)


def verify_part(part: Part, *, sizes: Sizes | None = None, name: str = "") -> Iterator[Error]:
    """Somebody's own part beside those of the catalog: small tables, and longer ones that are computed in blocks.

    A part whose tensors belong to some number of queries or keys is given those `sizes`, and no others.
    """
    family = family_of(part)
    field = FIELDS[FAMILIES.index(family)]
    torch.default_generator.manual_seed(0)
    part = cast_part(part, torch.float64, jitter=0.1)  # the caller keeps theirs as it is
    own = {family: name or type(part).__name__}
    small = pairwise([[own.get(other, "")] if other == family else BESIDE[family][other] for other in FAMILIES])
    cases = [(case, sizes or SMALL) for case in small]
    cases += [] if sizes else [(case._replace(**own), LONG) for case in BLOCKS]
    for case, size in cases:
        parts = build(case._replace(**{family: getattr(PLAIN, family)}), size)
        yield from compare(case, parts._replace(**{field: part}), size)  # type: ignore[arg-type]


def choose_sizes(queries: int | None, keys: int | None, heads: int | None) -> Sizes | None:
    """Return sizes for a part that fits no others; None where none is named."""
    if queries is None and keys is None and heads is None:
        return None
    for name, count in {"queries": queries, "keys": keys, "heads": heads}.items():
        if count is not None and count < 1:
            raise wrong(name, count, "at least 1", f"name the number of {name} that the part is made for")
    lead = SMALL.lead if heads is None else (*SMALL.lead[:-1], heads)
    return SMALL._replace(queries=queries or SMALL.queries, keys=keys or SMALL.keys, lead=lead)


def family_of(part: object) -> str:
    """Return the family of the catalog that a part belongs to; raise where it is no part."""
    for family, kind in zip(FAMILIES, KINDS, strict=True):
        if isinstance(part, kind):
            return family
    names = ", ".join(f"regard.{kind.__name__}" for kind in KINDS)
    raise wrong_kind("part", describe(part), f"one of {names}", "subclass one of them")


def verify_score(score: Score, *, sizes: Sizes | None = None, name: str = "score") -> Iterator[Error]:
    """Somebody's own score under every mask and normalizer of the catalog."""
    yield from verify_part(score, sizes=sizes, name=name)
