"""Compare every backend with the definition in float64: values and all gradients."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch

from regard.algebra import catalog
from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.catalog import Sizes
from regard.algebra.definition import weigh
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer
from regard.algebra.pairs import Pairs
from regard.algebra.parts import CallFacts, Parts
from regard.algebra.scores import Score
from regard.algebra.shapes import Tensor, describe
from regard.compute.attend import AttentionResult, attend
from regard.compute.backends import BACKENDS
from regard.compute.catalog_cases import BLOCKS, COMPANIONS, FAMILIES, PLAIN, CatalogCase, choose_pairwise_cases
from regard.compute.kernels import native, noise
from regard.compute.planning import BackendName
from regard.errors import wrong, wrong_kind

SEED = 2  # of every random aggregate and of dropout
VALUE, GRADIENT = 1e-10, 1e-8  # what float64 must reach, relative to the size of the numbers
SMALL = Sizes(query=5, key=5, value=3, lead=(2, 3), queries=7, keys=11)
Leads = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # of queries, keys and values; they broadcast
KINDS: tuple[type, ...] = (Score, Bias, Mask, Normalizer, Aggregate)
Part = Score | Bias | Mask | Normalizer | Aggregate
AnyPart = TypeVar("AnyPart")


class Deviation(NamedTuple):
    """The worst differences of one path from the definition, relative to the size of the numbers."""

    case: CatalogCase
    backend: BackendName
    value: float
    gradient: float

    @property
    def within_tolerance(self) -> bool:
        """Return whether both are small enough. NaN is not."""
        return self.value <= VALUE and self.gradient <= GRADIENT


LONG = SMALL._replace(queries=150, keys=160)  # long enough that a window has three blocks


def build_parts(case: CatalogCase, sizes: Sizes, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> Parts:
    """Return the parts of a case, with parameters off their starting values so that no gradient is zero by symmetry."""
    torch.default_generator.manual_seed(seed)
    parts = Parts(
        catalog.SCORES[case.score](sizes),
        catalog.BIASES[case.bias](sizes),
        catalog.MASKS[case.mask](sizes),
        catalog.NORMALIZERS[case.normalizer](sizes),
        catalog.AGGREGATES[case.aggregate](sizes),
    )
    for part in parts:
        if isinstance(part, torch.nn.Module):
            part.to(dtype)
            prepare_tensors(part, dtype)
    return parts


def prepare_tensors(part: torch.nn.Module, dtype: torch.dtype) -> None:
    """Move parameters off their starting values, and give the other tensors of a part `dtype` and a gradient."""
    for parameter in part.parameters():
        parameter.data.add_(0.1 * torch.rand_like(parameter))
    settings = [item for item in part._buffers.items() if item[0] not in part._non_persistent_buffers_set]
    for name, tensor in [*vars(part).items(), *settings]:
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            setattr(part, name, tensor.to(dtype).detach().requires_grad_())


def cast_parts(parts: Parts, dtype: torch.dtype, *, jitter: float = 0.0) -> Parts:
    """Return a copy of the parts with every float tensor in `dtype`; all but constants want a gradient.

    `jitter` is the size of the random numbers that are added to parameters: scripts of the fuzzer give one.
    """
    parts = copy.deepcopy(parts)
    for part in parts:
        _cast_tensors(part, dtype, jitter)
    return parts


def cast_part(part: AnyPart, dtype: torch.dtype, *, jitter: float = 0.0) -> AnyPart:
    """Return a copy of one part, cast as `cast_parts` casts all of them.

    `jitter` is the size of the random numbers that are added to parameters, so that none stays at its starting value.
    """
    part = copy.deepcopy(part)
    _cast_tensors(part, dtype, jitter)
    return part


def _cast_tensors(part: object, dtype: torch.dtype, jitter: float) -> None:
    for module in part.modules() if isinstance(part, torch.nn.Module) else ():
        for parameter in module.parameters(recurse=False):
            parameter.data = (parameter.data + jitter * torch.rand_like(parameter)).to(dtype)
        constant = module._non_persistent_buffers_set
        for names in (vars(module), module._buffers):
            loose = [(name, tensor) for name, tensor in names.items() if isinstance(tensor, Tensor)]
            floats = [(name, tensor.detach()) for name, tensor in loose if tensor.is_floating_point()]
            names.update({name: tensor.to(dtype).requires_grad_(name not in constant) for name, tensor in floats})


def draw_inputs(
    sizes: Sizes, *, dtype: torch.dtype = torch.float64, seed: int = 1, leads: Leads | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values that want a gradient; with leading axes of their own if `leads` has them."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (sizes.queries, sizes.query), (sizes.keys, sizes.key), (sizes.keys, sizes.value)
    whole = zip(leads or (sizes.lead,) * 3, shapes, strict=True)
    drawn = [torch.randn(*lead, *shape, generator=generator, dtype=torch.float64) for lead, shape in whole]
    query, key, value = (tensor.to(dtype).requires_grad_() for tensor in drawn)
    return query, key, value


def run_backend(
    parts: Parts, tensors: Sequence[Tensor], backend: BackendName, *, dropout: float = 0.0
) -> AttentionResult:
    """Return the result of one call, from a fixed state of the random numbers."""
    torch.default_generator.manual_seed(SEED)
    query, key, value = tensors
    return attend(query, key, value, **parts._asdict(), dropout=dropout, backend=backend)


def compute_gradients(parts: Parts, tensors: Sequence[Tensor], attended: AttentionResult) -> list[Tensor | None]:
    """Return the gradients of a fixed mixture of output and log-probability by every input and tensor of the parts."""
    generator = torch.Generator().manual_seed(3)
    loss = _mix(attended.output, generator)
    if attended.log_prob is not None:
        loss = loss + _mix(attended.log_prob, generator)
    wanted = [tensor for tensor in (*tensors, *parts.tensors()) if tensor.requires_grad]
    if not loss.requires_grad:
        return [None] * len(wanted)
    return list(torch.autograd.grad(loss, wanted, allow_unused=True))


def _mix(tensor: Tensor, generator: torch.Generator) -> Tensor:
    mixture = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    return (tensor * mixture.to(tensor.dtype)).sum()


def measure_difference(found: Tensor | None, true: Tensor | None) -> float:
    """Return the largest difference over the largest number (at least one); a missing gradient counts as zeros."""
    if found is None and true is None:
        return 0.0
    found = torch.zeros_like(true) if found is None else found  # type: ignore[arg-type]
    true = torch.zeros_like(found) if true is None else true
    if found.shape != true.shape:
        return float("inf")
    found, true = found.detach().double(), true.detach().double()
    return float((found - true).abs().max() / true.abs().max().clamp_min(1.0))


def find_worst(differences: Iterable[float]) -> float:
    """Return the largest; NaN if there is one, which `max` would pass over.

    >>> find_worst([0.0, float("nan"), 1.0])
    nan
    """
    return max(differences, key=lambda number: (number != number, number), default=0.0)


class Reference(NamedTuple):
    """The definition's result of one case, with its weights and gradients."""

    attended: AttentionResult
    weights: Tensor
    gradients: list[Tensor | None]


def compute_reference(parts: Parts, tensors: Sequence[Tensor], *, dropout: float = 0.0) -> Reference:
    """Return the definition's answer: by the backend `eager`, with weights from the formula of the score itself."""
    attended = run_backend(parts, tensors, "eager", dropout=dropout)
    query, key, _ = tensors
    torch.default_generator.manual_seed(SEED)
    seed = noise.draw_seed(query.device)
    with torch.no_grad():
        weights = weigh(parts, parts.score, query, key, Pairs(query.shape[-2], key.shape[-2]), seed=seed).weights
    return Reference(attended, weights, compute_gradients(parts, tensors, attended))


def compare_backends(case: CatalogCase, parts: Parts, sizes: Sizes, *, dropout: float = 0.0) -> Iterator[Deviation]:
    """Compare every backend that supports these parts with the definition, which is computed once."""
    tensors = draw_inputs(sizes)
    true = compute_reference(parts, tensors, dropout=dropout)
    for backend in find_supported_backends(parts, sizes, dropout=dropout):
        found = run_backend(parts, tensors, backend, dropout=dropout)
        slopes = zip(compute_gradients(parts, tensors, found), true.gradients, strict=True)
        yield Deviation(
            case, backend, measure_value_error(found, true), find_worst(measure_difference(a, b) for a, b in slopes)
        )
    with torch.no_grad():
        supported = find_supported_backends(parts, sizes, dropout=dropout)
        only = [backend for backend in supported if not BACKENDS[backend].has_backward]
        errors = [measure_value_error(run_backend(parts, tensors, backend, dropout=dropout), true) for backend in only]
    yield from (Deviation(case, backend, error, 0.0) for backend, error in zip(only, errors, strict=True))


def measure_value_error(found: AttentionResult, true: Reference) -> float:
    """Return the worst difference of output, log-probability and weights."""
    everything = slice(None)
    return find_worst(
        (
            measure_difference(found.output, true.attended.output),
            measure_difference(found.log_prob, true.attended.log_prob),
            measure_difference(found.weights.tile(everything, everything), true.weights),
        )
    )


def find_supported_backends(
    parts: Parts, sizes: Sizes, *, dropout: float = 0.0, dtype: torch.dtype = torch.float64
) -> list[BackendName]:
    """Return the backends besides eager that support these parts, one for each code path (`rows` runs as `stream`)."""
    length, grad = (sizes.queries, sizes.keys), torch.is_grad_enabled()
    native.load_library(build=False)  # as the operator does: backends may need it
    there = native.describe_state()
    facts = CallFacts(
        sizes.lead, *length, sizes.query, sizes.value, dtype, dropout=dropout > 0, grad=grad, native=there
    )
    paths: dict[object, BackendName] = {}
    for name, backend in BACKENDS.items():
        if name != "eager" and backend.explain_unsupported(parts, facts) is None:
            paths.setdefault(type(backend).run, name)
    return list(paths.values())


def verify(cases: Sequence[CatalogCase] | None = None, *, sizes: Sizes = SMALL) -> Iterator[Deviation]:
    """Yield the deviations of every backend for these cases."""
    for case in choose_pairwise_cases() if cases is None else cases:
        yield from compare_backends(case, build_parts(case, sizes), sizes)


def verify_part(part: Part, *, sizes: Sizes | None = None, name: str = "") -> Iterator[Deviation]:
    """Verify a user's part beside those of the catalog, in small tables and in longer ones that are cut into blocks.

    A part whose tensors are made for some number of queries or keys is tried with those `sizes` only.
    """
    family = find_family(part)
    torch.default_generator.manual_seed(0)
    part = cast_part(part, torch.float64, jitter=0.1)  # the caller keeps theirs as it is
    own = {family: name or type(part).__name__}
    small = choose_pairwise_cases(
        [[own.get(other, "")] if other == family else COMPANIONS[family][other] for other in FAMILIES]
    )
    cases = [(case, sizes or SMALL) for case in small]
    cases += [] if sizes else [(case._replace(**own), LONG) for case in BLOCKS]
    for case, size in cases:
        parts = build_parts(case._replace(**{family: getattr(PLAIN, family)}), size)
        yield from compare_backends(case, parts._replace(**{family: part}), size)  # type: ignore[arg-type]


def choose_sizes(queries: int | None, keys: int | None, heads: int | None) -> Sizes | None:
    """Return sizes for a part that fits no others; None if none is named."""
    if queries is None and keys is None and heads is None:
        return None
    for name, count in {"queries": queries, "keys": keys, "heads": heads}.items():
        if count is not None and count < 1:
            raise wrong(name, count, "at least 1", f"name the number of {name} that the part is made for")
    lead = SMALL.lead if heads is None else (*SMALL.lead[:-1], heads)
    return SMALL._replace(queries=queries or SMALL.queries, keys=keys or SMALL.keys, lead=lead)


def find_family(part: object) -> str:
    """Return the family of the catalog that a part belongs to; raise if it is no part."""
    for family, kind in zip(FAMILIES, KINDS, strict=True):
        if isinstance(part, kind):
            return family
    names = ", ".join(f"regard.{kind.__name__}" for kind in KINDS)
    raise wrong_kind("part", describe(part), f"one of {names}", "subclass one of them")
