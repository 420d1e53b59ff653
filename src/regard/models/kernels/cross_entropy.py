r"""Label-smoothed cross-entropy of an output layer, which never holds the scores of all tokens.

$$ \ell_i = -\sum_v t_{iv} \log p_{iv}, \qquad p_i = \mathrm{softmax}(W x_i + b), \qquad t_{iv} = (1 - \epsilon)
   [v = y_i] + \epsilon / V $$

with $x$ = `vectors`, $W$ = `weight`, $b$ = `bias`, $y$ = `targets`, $\epsilon$ = `smoothing` and $V$ the size of the
vocabulary. Szegedy et al. 2016, §7. The gradient by the scores is $p_i - t_i$: it is known as soon as the loss is, so
a chunk of tokens is scored, its scores are turned into their gradient in place, and that is multiplied into the
gradients of $x$, $W$ and $b$ at once. Nothing but these gradients waits for the backward pass.
"""

import ctypes
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels import native
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX
from regard.errors import wrong

CHUNK = 1 << 21  # scores at a time: 8 MB in float32, which stay in the cache between the passes


class CrossEntropyResult(NamedTuple):
    """Sums over the tokens: the smoothed loss, which has a gradient; the loss without smoothing; and for each token
    whether the target had the highest score."""

    total: Float[Tensor, ""]
    negative_log_likelihood: Float[Tensor, ""]
    correct: Bool[Tensor, " token"]


def cross_entropy(
    vectors: Float[Tensor, "token width"],
    weight: Float[Tensor, "vocabulary width"],
    bias: Float[Tensor, " vocabulary"] | None,
    targets: Int[Tensor, " token"],
    *,
    smoothing: float = 0.0,
) -> CrossEntropyResult:
    """Return the loss of these tokens.

    >>> cross_entropy(torch.zeros(3, 2), torch.zeros(5, 2), None, torch.tensor([0, 1, 4])).negative_log_likelihood / 3
    tensor(1.6094)
    """
    if not 0 <= smoothing < 1:
        raise wrong("smoothing", smoothing, "a share from 0 to below 1", "use 0.1, or 0 for none")
    if len(targets) and not (int(targets.min()) >= 0 and int(targets.max()) < len(weight)):
        got = f"{int(targets.min())} … {int(targets.max())}"
        raise wrong("targets", got, f"numbers from 0 to {len(weight) - 1}", "build the model for this vocabulary")
    return CrossEntropyResult(*_CrossEntropy.apply(vectors, weight, bias, targets, smoothing))  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        wanted = ctx.needs_input_grad[:3]
        given = (vectors, weight, bias)
        grads = [torch.zeros_like(t) if w and t is not None else None for t, w in zip(given, wanted, strict=True)]
        size, sums, right = max(1, CHUNK // len(weight)), [], []
        for start in range(0, len(vectors), size):
            part = slice(start, start + size)
            scores = vectors[part] @ weight.T  # without the bias, which torch would write to all of them first
            losses, surprises, hits = compute_losses(scores, bias, targets[part], smoothing)
            _accumulate(grads, scores, vectors, weight, part)
            sums.append(torch.stack([losses.sum(), surprises.sum()]))
            right.append(hits)
        total = torch.stack(sums).sum(0) if sums else vectors.new_zeros(2)
        ctx.save_for_backward(*grads)
        hits = torch.cat(right) if right else targets.new_zeros(0, dtype=torch.bool)
        surprise = total[1].clone()
        ctx.mark_non_differentiable(surprise, hits)
        return total[0].clone(), surprise, hits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor, _: Tensor, __: Tensor) -> tuple[Tensor | None, ...]:
        grads = ctx.saved_tensors
        if bool(upstream == 1):
            return *grads, None, None
        return *(None if grad is None else grad * upstream for grad in grads), None, None


def _accumulate(grads: list[Tensor | None], scores: Tensor, vectors: Tensor, weight: Tensor, part: slice) -> None:
    """Add what a chunk's gradient, in `scores`, gives to each of the three."""
    by_vectors, by_weight, by_bias = grads
    if by_vectors is not None:
        torch.mm(scores, weight, out=by_vectors[part])
    if by_weight is not None:
        by_weight.addmm_(scores.T, vectors[part])
    if by_bias is not None:
        by_bias.add_(scores.sum(0))


def compute_losses(
    scores: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return each row's loss, its loss without smoothing, and whether it is right; `scores` become their gradient."""
    plain = scores.dtype in SUFFIX and scores.is_contiguous() and tensor_memory.is_reachable(scores, bias, targets)
    library = native.load_library() if plain else None
    if library is None or not scores.numel():
        return _compute_losses_in_torch(scores if bias is None else scores.add_(bias), targets, smoothing)
    losses, surprises = scores.new_empty(2, len(scores)).unbind()
    right = scores.new_empty(len(scores), dtype=torch.bool)
    kinds = (*(native.SIZE,) * 3, ctypes.c_double, *(native.POINTER,) * 6)
    run = library.function(f"regard_cross_entropy_{SUFFIX[scores.dtype]}", *kinds)
    targets = tensor_memory.make_contiguous(targets.to(torch.int64).expand(len(scores)))
    # The kernel reads as many numbers of this kind as there are scores in a row.
    bias = None if bias is None else tensor_memory.make_contiguous(bias.to(scores.dtype).expand(scores.shape[1]))
    places = [tensor_memory.get_address(tensor) for tensor in (targets, bias, scores, losses, surprises, right)]
    run(torch.get_num_threads(), *scores.shape, smoothing, *places)
    return losses, surprises, right


def _compute_losses_in_torch(scores: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same by torch."""
    wanted = scores.gather(1, targets[:, None])[:, 0]
    totals = scores.logsumexp(1)
    losses = totals - (1 - smoothing) * wanted - smoothing * scores.mean(1)
    right = scores.argmax(1) == targets
    scores.sub_(totals[:, None]).exp_().sub_(smoothing / scores.shape[1])
    scores.scatter_add_(1, targets[:, None], torch.full_like(wanted, smoothing - 1)[:, None])
    return losses, totals - wanted, right
