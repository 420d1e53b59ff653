"""Convert projections to and from `nn.MultiheadAttention`."""

from typing import Any

import torch
from torch import nn

from regard.algebra.shapes import Tensor, describe
from regard.errors import wrong, wrong_kind
from regard.layers.projections import HeadProjections, PackedProjections, Projections, build_linear


def from_multihead(module: nn.MultiheadAttention) -> HeadProjections:
    """Return the projections of that module, packed as it packs them; copies, on its device and in its dtype."""
    if not isinstance(module, nn.MultiheadAttention):
        raise wrong_kind("module", describe(module), "an nn.MultiheadAttention", "pass the module itself")
    for name, given in (("add_bias_kv", module.bias_k is not None), ("add_zero_attn", module.add_zero_attn)):
        if given:
            raise wrong(name, True, "False", "append that key and value with Memory.append")
    made = _convert_packed(module) if module.in_proj_weight is not None else _convert_separate(module)
    _copy(made.output, module.out_proj.weight, module.out_proj.bias)
    return made


def to_multihead(projections: HeadProjections, *, dropout: float = 0.0) -> nn.MultiheadAttention:
    """Return a module of torch with these projections, batch first; raise if torch has no such module."""
    if projections.groups != projections.heads:
        fix = "build the layer with as many groups as heads"
        raise wrong("groups", projections.groups, f"heads={projections.heads}, all that torch has", fix)
    query, key, value = _split_matrices(projections)
    output = _check_linear("output", projections.output)
    size, heads = query.in_features, projections.heads
    if not query.out_features == key.out_features == value.out_features == output.in_features == size:
        got = f"widths {query.out_features}, {key.out_features} and {value.out_features}"
        raise wrong("projections", got, f"size={size} for query, key and value", "build the layer without `widths`")
    bias = any(linear.bias is not None for linear in (query, key, value, output))
    widths = {"kdim": key.in_features, "vdim": value.in_features}
    made = nn.MultiheadAttention(size, heads, dropout=dropout, bias=bias, batch_first=True, **widths).to(query.weight)
    with torch.no_grad():
        _fill(made, query, key, value, output)
    return made


def _convert_packed(module: nn.MultiheadAttention) -> PackedProjections:
    made = PackedProjections(module.embed_dim, heads=module.num_heads, bias=module.in_proj_bias is not None)
    made.to(module.in_proj_weight)
    _copy(made.input, module.in_proj_weight, module.in_proj_bias)
    return made


def _convert_separate(module: nn.MultiheadAttention) -> Projections:
    bias = module.in_proj_bias is not None
    widths = {"source": module.kdim, "content": module.vdim}
    made = Projections.linear(module.embed_dim, heads=module.num_heads, bias=bias, **widths)
    made.to(module.q_proj_weight)
    biases = module.in_proj_bias.chunk(3) if bias else (None, None, None)
    weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    for linear, weight, own in zip((made.query, made.key, made.value), weights, biases, strict=True):
        _copy(linear, weight, own)
    return made


def _split_matrices(projections: HeadProjections) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """Return query, key and value, each as a matrix of its own."""
    if isinstance(projections, PackedProjections):
        size, width, _ = projections.widths
        edges = ((0, size), (size, size + width), (size + width, None))
        return tuple(_build_linear(*projections.slice_rows(start, stop)) for start, stop in edges)  # type: ignore[return-value]
    parts = [(name, getattr(projections, name, None)) for name in ("query", "key", "value")]
    return tuple(_check_linear(name, module) for name, module in parts)  # type: ignore[return-value]


def _build_linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    linear = build_linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight)
    _copy(linear, weight, bias)
    return linear


def _check_linear(name: str, module: nn.Module | None) -> nn.Linear:
    if not isinstance(module, nn.Linear):
        raise wrong_kind(
            f"projections.{name}", describe(module), "an nn.Linear, all that torch has", "keep it in regard"
        )
    return module


def _copy(linear: Any, weight: Tensor, bias: Tensor | None) -> None:
    with torch.no_grad():
        linear.weight.copy_(weight)
        if bias is not None:
            linear.bias.copy_(bias)


def _fill(made: nn.MultiheadAttention, query: nn.Linear, key: nn.Linear, value: nn.Linear, output: nn.Linear) -> None:
    if made.in_proj_weight is not None:
        made.in_proj_weight.copy_(torch.cat([query.weight, key.weight, value.weight]))
    else:
        for own, linear in ((made.q_proj_weight, query), (made.k_proj_weight, key), (made.v_proj_weight, value)):
            own.copy_(linear.weight)
    made.out_proj.weight.copy_(output.weight)
    if made.in_proj_bias is None:
        return
    made.in_proj_bias.copy_(torch.cat([_get_bias(linear) for linear in (query, key, value)]))
    made.out_proj.bias.copy_(_get_bias(output))


def _get_bias(linear: nn.Linear) -> Tensor:
    """Return the bias, or zeros if there is none."""
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
