r"""Additive scores without a tanh for each pair, and without a (queries × keys × hidden) tensor.

$$ s_{ij} = \sum_h w_h \tanh(q_{ih} + k_{jh}), \qquad \tanh(a + b) = \frac{e^{2a} e^{2b} - 1}{e^{2a} e^{2b} + 1} $$

with $q$ = `query`, $k$ = `key`, $w$ = `weight`. The exponentials are of (queries + keys) × hidden numbers; what is left
for each pair is a few multiplications and a quarter of a division. That is what the compiled kernel does (`native`), on
the CPU, if a compiler is found and the call is large enough. Elsewhere blocks of torch operations stay in the cache.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

from regard.algebra.shapes import Float, Keys, Queries, Scores, Tensor
from regard.compute.kernels import additive_blocks, native
from regard.compute.kernels.native import additive as compiled
from regard.compute.kernels.native import tensor_memory
from regard.errors import wrong, wrong_kind

LOAD = 2**16  # pairs of hidden units from which a library on disk is worth loading, some 20 ms once
BUILD = 2**22  # … from which it is worth compiling, some seconds once for each machine
OFTEN = 2**25  # … the same, for many small calls together

_small_calls = 0  # pairs of hidden units seen in calls that were too small to compile for


def additive_scores(query: Queries, key: Keys, weight: Float[Tensor, "*#lead dim"]) -> Scores:
    """Return $w^\\top \\tanh(q_i + k_j)$ for each query and key, computed in at least float32 and rounded once.

    >>> additive_scores(torch.tensor([[0.0], [100.0]]), torch.tensor([[0.0], [-100.0]]), torch.tensor([2.0]))
    tensor([[ 0., -2.],
            [ 2.,  0.]])
    """
    _check(query, key, weight)
    run: Callable[..., Tensor] = _compute_scores
    if tensor_memory.is_exporting():
        run = _score_at_once  # an exported graph runs without our operators
    elif torch.compiler.is_compiling():
        run = _scores_operator
    elif tensor_memory.is_mapped():
        # Forward derivatives flow through torch's own operations only.
        run = _score_at_once if tensor_memory.is_forward_mode() else _MappedScores.apply
    elif _fits_at_once(query, key, weight):
        run = _score_at_once
    elif torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or weight.requires_grad):
        run = _AdditiveScores.apply
    return run(query, key, weight)


def choose_kernel(work: int, device: str, dtype: torch.dtype, state: str = "") -> tuple[str, str]:
    """Return which kernel computes a call, and why; `work` is queries × keys × hidden × batch.

    `state` is that of the compiled library (`native.describe_state`).

    >>> choose_kernel(2**30, "cuda", torch.float32)
    ('torch blocks', 'the compiled kernel is for the CPU')
    """
    if not device.startswith("cpu"):
        return "torch blocks", "the compiled kernel is for the CPU"
    if not dtype.is_floating_point:
        return "torch blocks", f"the compiled kernel is for floats, not {dtype}"
    if state:
        return ("native", "the compiled kernel is loaded") if state == "loaded" else ("torch blocks", state)
    if work >= BUILD:
        return "native", f"{work:,} pairs of hidden units are worth compiling for"
    return "torch blocks", f"{work:,} pairs of hidden units are too few to compile for"


def _check(query: Tensor, key: Tensor, weight: Tensor) -> None:
    width = query.shape[-1]
    if key.shape[-1] != width or weight.shape[-1] != width:
        name, got = ("weight", weight) if key.shape[-1] == width else ("key", key)
        raise wrong(name, f"width {got.shape[-1]}", f"the query's {width}", "project both to one width")
    if not (query.is_floating_point() and key.is_floating_point() and weight.is_floating_point()):
        kinds = f"{query.dtype}, {key.dtype} and {weight.dtype}"
        raise wrong_kind("query, key, weight", kinds, "float dtypes", "convert them with .float()")


def _find_library(query: Tensor, key: Tensor, weight: Tensor, *others: Tensor) -> native.Library | None:
    """Return the library if the compiled kernel can and should compute this call."""
    global _small_calls
    if not tensor_memory.is_reachable(query, key, weight, *others):
        return None  # fake and meta tensors have no memory to point at
    found = native.get_loaded()
    if found is None and not native.get_failure():
        work = _count_work(query, key, weight)
        _small_calls += work
        if work >= LOAD or _small_calls >= OFTEN:
            found = native.load_library(build=work >= BUILD or _small_calls >= OFTEN)
    return found


def _count_work(query: Tensor, key: Tensor, weight: Tensor) -> int:
    """Return how many pairs of hidden units are evaluated."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], weight.shape[:-1])
    pairs = query.shape[-2] * key.shape[-2]
    return int(torch.Size(lead).numel()) * pairs * query.shape[-1]


def _fits_at_once(query: Tensor, key: Tensor, weight: Tensor) -> bool:
    if native.get_loaded() or _count_work(query, key, weight) > additive_blocks.AT_ONCE:
        return False
    return _find_library(query, key, weight) is None


def _score_at_once(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    dtype, (query, key, weight) = _widen(query, key, weight)
    return additive_blocks.score_at_once(query, key, weight).to(dtype)


def _widen(*tensors: Tensor) -> tuple[torch.dtype, tuple[Tensor, ...]]:
    """Return the dtype of the result, and the tensors in the dtype to compute in."""
    dtype = tensors[0].dtype
    if dtype in (torch.float32, torch.float64) and all(tensor.dtype == dtype for tensor in tensors):
        return dtype, tensors
    dtype = _promote_dtypes(*tensors)
    wide = torch.promote_types(dtype, torch.float32)
    return dtype, tuple(tensor.to(wide) for tensor in tensors)


def _promote_dtypes(*tensors: Tensor) -> torch.dtype:
    return functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))


def _compute_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    dtype, (query, key, weight) = _widen(query, key, weight)
    library = _find_library(query, key, weight)
    if library is None:
        return additive_blocks.compute_scores(query, key, weight).to(dtype)
    return compiled.compute_scores(library, query, key, weight).to(dtype)


def _compute_gradients(upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    kinds = query.dtype, key.dtype, weight.dtype
    _, (upstream, query, key, weight) = _widen(upstream, query, key, weight)
    library = _find_library(query, key, weight, upstream)
    if library is None:
        made = additive_blocks.compute_gradients(upstream, query, key, weight)
    else:
        made = compiled.compute_gradients(library, upstream, query, key, weight)
    return made[0].to(kinds[0]), made[1].to(kinds[1]), made[2].to(kinds[2])


class _AdditiveScores(torch.autograd.Function):
    """The usual case. It has no `setup_context`: torch would read its signature at each call, which takes 30 µs."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, weight)
        return _compute_scores(query, key, weight)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        if torch.is_grad_enabled():  # a second derivative will be asked for
            return _MappedGradients.apply(upstream, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return _compute_gradients(upstream, *ctx.saved_tensors)


class _MappedScores(torch.autograd.Function):
    """The same under torch.func's transforms."""

    @staticmethod
    def forward(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        return _compute_scores(query, key, weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        return _MappedGradients.apply(upstream, *ctx.saved_tensors)  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], *tensors: Tensor) -> tuple[Tensor, int]:
        wide = _align_mapped(info.batch_size, axes, tensors, (2, 2, 1))
        return _MappedScores.apply(*wide), 0  # type: ignore[no-untyped-call]


class _MappedGradients(torch.autograd.Function):
    """The gradients as a function of their own, so that they have gradients and can be mapped too."""

    @staticmethod
    def forward(upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _compute_gradients(upstream, query, key, weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        """Return second derivatives, which are rare, from the definition, with all the memory it takes."""
        with torch.enable_grad():
            first, query, key, weight = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
            hidden = torch.tanh(query[..., :, None, :] + key[..., None, :, :])
            scores = (hidden * weight[..., None, None, :]).sum(-1)
            made = torch.autograd.grad(scores, (query, key, weight), first, create_graph=True)
        return torch.autograd.grad(made, (first, query, key, weight), upstream)

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], *tensors: Tensor) -> tuple[Any, tuple[int, int, int]]:
        wide = _align_mapped(info.batch_size, axes, tensors, (2, 2, 2, 1))
        made = _MappedGradients.apply(*wide)  # type: ignore[no-untyped-call]
        shapes = [_select_one(tensor, axis).shape for tensor, axis in zip(tensors[1:], axes[1:], strict=True)]
        return tuple(part.reshape(-1, *shape) for part, shape in zip(made, shapes, strict=True)), (0, 0, 0)


def _select_one(tensor: Tensor, axis: int | None) -> Tensor:
    return tensor if axis is None else tensor.select(axis, 0)


def _align_mapped(
    count: int, axes: tuple[int | None, ...], tensors: tuple[Tensor, ...], cores: tuple[int, ...]
) -> list[Tensor]:
    """Return tensors that broadcast: the mapped axis, equally many leading axes, then the last `cores` axes."""
    ones = [_select_one(tensor, axis) for tensor, axis in zip(tensors, axes, strict=True)]
    lead = max(one.dim() - core for one, core in zip(ones, cores, strict=True))
    wide = []
    for tensor, axis, one, core in zip(tensors, axes, ones, cores, strict=True):
        first = tensor.expand(count, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
        wide.append(first.reshape(count, *(1,) * (lead + core - one.dim()), *one.shape))
    return wide


@torch.library.custom_op("regard::additive_scores", mutates_args=())
def _scores_operator(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    return _compute_scores(query, key, weight)


@torch.library.custom_op("regard::additive_gradients", mutates_args=())
def _gradients_operator(upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _compute_gradients(upstream, query, key, weight)


@_scores_operator.register_fake
def _(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], weight.shape[:-1])
    return query.new_empty((*lead, query.shape[-2], key.shape[-2]), dtype=_promote_dtypes(query, key, weight))


@_gradients_operator.register_fake
def _(upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape), weight.new_empty(weight.shape)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    made: tuple[Tensor, Tensor, Tensor] = _gradients_operator(upstream, *ctx.saved_tensors)
    return made


_scores_operator.register_autograd(_backward, setup_context=_save)
