"""The gate to torch's fused attention on the CPU, which reads memory by pointer and checks little of what it is given.

Its private operators take four axes and one width. They take for granted that the numbers of a row lie next to each
other, that rows do not overlap, that leading axes are equal and that nothing is empty; otherwise they read
memory outside of the tensors, or end the process. Here every call is brought into that form, or refused.
"""

from collections.abc import Callable, Sequence

import torch

from regard.algebra.shapes import Bool, Float, Tensor
from regard.compute.kernels.native import tensor_memory
from regard.errors import wrong

FlashQuery = Float[Tensor, "batch head query dim"]
FlashKey = Float[Tensor, "batch head key dim"]
FlashTotal = Float[Tensor, "batch head query"]

# torch's own binding: through torch.ops the same call takes half as long again.
_forward = torch._C._VariableFunctions._scaled_dot_product_flash_attention_for_cpu
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def flash_attention(
    query: FlashQuery, key: FlashKey, value: FlashKey, *, scale: float, causal: bool = False, bias: Tensor | None = None
) -> tuple[FlashQuery, FlashTotal]:
    """Return output and log totals; `bias` gets no gradient."""
    _check(query, key, value)
    if 0 in query.shape or 0 in key.shape:
        return _attend_empty(query, key, value, scale, bias)
    output, total = _forward(
        separate_rows(query),
        separate_rows(key),
        separate_rows(value),
        0.0,
        causal,
        attn_mask=_match_dtype(bias, query),
        scale=scale,
    )
    # A row whose scores are all NaN comes out as zeros with a total of 0, as if it were empty.
    doubtful = total == 0
    known = tensor_memory.is_readable(total)
    # What is exported runs elsewhere, where a softmax is another one and there are no totals.
    if bool(doubtful.any()) if known else not tensor_memory.is_exporting():
        broken = doubtful & _has_broken_scores(query, key, bias)
        output, total = output.masked_fill(broken[..., None], float("nan")), total.masked_fill(broken, float("nan"))
    return output, total


def _has_broken_scores(query: FlashQuery, key: FlashKey, bias: Tensor | None) -> Bool[Tensor, "batch head query"]:
    """Return whether the score of the first key, which stands for all visible ones, is NaN in a nonempty row."""
    broken = torch.isnan((query * key[..., :1, :]).sum(-1))
    return broken if bias is None else broken & ~(bias == float("-inf")).all(-1)


def flash_attention_backward(  # noqa: PLR0913  # what the operator takes
    gradient: FlashQuery,
    query: FlashQuery,
    key: FlashKey,
    value: FlashKey,
    output: FlashQuery,
    total: FlashTotal,
    *,
    scale: float,
    causal: bool = False,
    bias: Tensor | None = None,
) -> tuple[FlashQuery, FlashKey, FlashKey]:
    """Return the gradients of query, key and value, from that of the output."""
    _check(query, key, value)
    if not gradient.shape == query.shape == output.shape or total.shape != query.shape[:-1]:
        got = f"{tuple(gradient.shape)}, {tuple(output.shape)} and {tuple(total.shape)}"
        raise wrong(
            "gradient, output, total", got, f"shapes of the query's {tuple(query.shape)}", "give what flash gave"
        )
    if 0 in query.shape or 0 in key.shape:
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    gradient, query, key, value, output = (separate_rows(tensor) for tensor in (gradient, query, key, value, output))
    bias = _match_dtype(bias, query)
    made = _backward(gradient, query, key, value, output, total, 0.0, causal, attn_mask=bias, scale=scale)
    return made[0], made[1], made[2]


def explicit_attention(
    query: FlashQuery, key: FlashKey, value: FlashKey, *, scale: float, causal: bool = False, bias: Tensor | None = None
) -> tuple[FlashQuery, FlashTotal]:
    """Return the same by the definition, in whole tables, which has derivatives of every order."""
    weights, total = explicit_weights(query, key, scale=scale, causal=causal, bias=bias)
    return weights @ value, total


def explicit_weights(
    query: FlashQuery, key: FlashKey, *, scale: float, causal: bool = False, bias: Tensor | None = None
) -> tuple[Tensor, FlashTotal]:
    """Return the table of weights, and the log totals."""
    scores = (query @ key.mT) * scale
    scores = scores if bias is None else scores + bias
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    empty = (scores == float("-inf")).all(-1, keepdim=True)
    total = scores.masked_fill(empty, 0.0).logsumexp(-1, keepdim=True)
    weights = (scores - total).exp().masked_fill(empty, 0.0)
    return weights, total.masked_fill(empty, float("-inf"))[..., 0]


def explicit_gradients(
    function: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    inputs: Sequence[Tensor],
    grads: tuple[Tensor, Tensor | None],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of three inputs as functions of them, so that they can be differentiated again."""
    # Views of their own: if two inputs are one tensor, each gets its own part of the gradient.
    own = [tensor.view_as(tensor) for tensor in inputs]
    output, total = function(*own)
    pairs = [(output, grads[0])] if grads[1] is None else [(output, grads[0]), (total, grads[1])]
    wanted = [tensor for tensor in own if tensor.requires_grad]
    upstream = [grad for _, grad in pairs]
    found = iter(torch.autograd.grad([made for made, _ in pairs], wanted, upstream, create_graph=True))
    return tuple(next(found) if tensor.requires_grad else None for tensor in own)


def separate_rows(tensor: Tensor) -> Tensor:
    """Return the tensor if the numbers of a row lie next to each other and rows do not overlap; else such a copy.

    The kernel lays its results out as its inputs are: an axis with steps shorter than a row would come before the
    coordinates there. An axis along which everything is the same (steps of 0) is only read.

    >>> separate_rows(torch.zeros(3, 2).T).stride()
    (3, 1)
    """
    stride, shape = tensor.stride(), tensor.shape
    width, fits = shape[-1], stride[-1] == 1 and stride[-2] >= shape[-1]
    for size, step in zip(shape[:-2], stride[:-2], strict=True):
        fits = fits and (size == 1 or step == 0 or step >= width)
    return tensor if fits else tensor.clone(memory_format=torch.contiguous_format)


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise if sizes differ, which the kernel does not check: it would read past the end of the smaller tensor."""
    near, far, content = query.shape, key.shape, value.shape
    if not (len(near) == 4 and near[:2] == far[:2] and far == content and near[3] == far[3]):
        got = f"{tuple(near)}, {tuple(far)} and {tuple(content)}"
        raise wrong("query, key, value", got, "four axes, equal but for the number of rows", "expand and pad them")


def _match_dtype(bias: Tensor | None, query: Tensor) -> Tensor | None:
    return bias if bias is None or bias.dtype == query.dtype else bias.to(query.dtype)


def _attend_empty(
    query: FlashQuery, key: FlashKey, value: FlashKey, scale: float, bias: Tensor | None
) -> tuple[FlashQuery, FlashTotal]:
    """Return output and totals by the definition, for no keys or no queries."""
    scores = (query @ key.mT) * scale
    scores = scores if bias is None else scores + bias
    return scores.softmax(-1) @ value, scores.logsumexp(-1).detach()
