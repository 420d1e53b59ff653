"""Checks of the input of `attend`; each fault is one sentence."""

from collections.abc import Iterable

import torch

from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.masks.base import as_mask
from regard.algebra.normalizers import Normalizer
from regard.algebra.parts import Parts
from regard.algebra.scores import Score
from regard.algebra.shapes import COMPUTED, Tensor, check_floats, describe
from regard.algebra.terms import check_heads
from regard.errors import InputError, format_message, wrong, wrong_kind


class LeadError(InputError):
    """The lead axes of queries, keys and values do not broadcast."""


KINDS = (
    ("score", Score, "a Score", "Dot()"),
    ("normalizer", Normalizer, "a Normalizer", "Softmax()"),
    ("aggregate", Aggregate, "an Aggregate", "Soft()"),
)


def check(parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> tuple[int, ...]:
    """Raise if the call makes no sense; otherwise return the lead axes that all of it broadcasts to."""
    _check_parts(parts)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        _check_tensor(name, tensor, query)
    if key.shape[-2] != value.shape[-2]:
        fix = "give each key its value"
        raise wrong("value", f"{value.shape[-2]} values", f"as many as keys, {key.shape[-2]}", fix)
    if not 0 <= dropout < 1:
        raise wrong("dropout", dropout, "a rate from 0 to below 1", "use 0 in evaluation")
    lead = _broadcast_lead(query, key, value)
    check_queries(query, lead)
    if not torch.compiler.is_compiling():  # a compiler cannot read a module that is made while it traces
        _check_parameters(parts.score, query)
        _check_settings(parts, lead)
    queries, keys = query.shape[-2], key.shape[-2]
    parts.score.check(query, key)
    if type(parts.mask) not in (Full, Causal):  # they fit every shape and hold no tensor
        _check_devices("mask", parts.mask.tensors(), query)
        parts.mask.check(lead, queries, keys)
    if parts.bias is not None:
        _check_devices("bias", parts.bias.tensors(), query)
        parts.bias.check(lead, queries, keys)
    parts.normalizer.check(lead, queries, keys)
    return lead


def _check_settings(parts: Parts, lead: tuple[int, ...]) -> None:
    for name, part in (("score", parts.score), ("normalizer", parts.normalizer), ("aggregate", parts.aggregate)):
        held = part._modules or part._parameters or part._buffers
        if held or any(map(torch.is_tensor, map(vars(part).get, part.per_head_settings))):
            for setting, tensor in part.per_head_tensors():
                check_heads(f"{name}.{setting}", tensor, lead)


def check_queries(query: Tensor, lead: tuple[int, ...]) -> None:
    """Raise if one query for each sequence, without an axis of queries, would pass for queries of all sequences."""
    own = tuple(query.shape[:-1])
    if len(own) <= len(lead) and own == lead[: len(own)] and any(size > 1 for size in own):
        got = f"{describe(query)} beside keys and values of lead axes {lead}"
        shared = f"query[{', '.join(['None'] * (len(lead) + 1 - len(own)))}]"
        fix = f"write query.unsqueeze(-2) if each sequence has one query, {shared} if all share these"
        raise wrong("query", got, "an axis of queries behind the lead axes", fix)


def _check_parts(parts: Parts) -> None:
    if not isinstance(parts.mask, Mask):
        as_mask(parts.mask)
    for name, kind, expected, example in KINDS:
        part = getattr(parts, name)
        if not isinstance(part, kind):
            raise wrong_kind(name, describe(part), expected, f"pass an instance, such as {example}")
    if parts.bias is not None and not isinstance(parts.bias, Bias):
        raise wrong_kind("bias", describe(parts.bias), "a Bias", "write Dense(tensor) for a table of numbers")


def _check_tensor(name: str, tensor: Tensor, query: Tensor) -> None:
    plain = isinstance(tensor, Tensor) and tensor.layout == torch.strided and not tensor.is_nested
    if not plain or tensor.dtype not in COMPUTED:
        check_floats(name, tensor)
    if tensor.dim() < 2:
        raise wrong(name, describe(tensor), f"at least ({AXES[name]})", "add the missing axis with tensor[None]")
    if 0 in tensor.shape[-2:]:
        raise wrong(name, describe(tensor), f"at least one in ({AXES[name]})", "skip the call when there is nothing")
    if tensor.dtype != query.dtype:
        fix = f"write {name}.to(query.dtype)"
        raise wrong_kind(name, describe(tensor), f"the query's dtype, {_format_dtype(query.dtype)}", fix)
    if tensor.device != query.device:
        fix = f"write {name}.to(query.device)"
        raise wrong(name, f"device {tensor.device}", f"the query's device, {query.device}", fix)


def _check_parameters(score: Score, query: Tensor) -> None:
    """Raise if a matrix has another dtype than the query; a single number is promoted by torch."""
    if not (score._parameters or score._modules):
        return
    for parameter in score.parameters():
        if parameter.dim() and parameter.dtype != query.dtype:
            got, expected = _format_dtype(parameter.dtype), _format_dtype(query.dtype)
            fix = "write score.to(query.dtype)"
            raise wrong_kind("score", f"{got} parameters", f"the query's dtype, {expected}", fix)
    _check_devices("score", score.parameters(), query)


def _check_devices(name: str, tensors: Iterable[Tensor], query: Tensor) -> None:
    for tensor in tensors:
        if tensor.device != query.device:
            got, fix = f"a tensor on device {tensor.device}", f"build the {name} on query.device"
            raise wrong(name, got, f"the query's device, {query.device}", fix)


AXES = {"query": "queries, width", "key": "keys, width", "value": "keys, width"}


def _format_dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _broadcast_lead(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    first, second, third = query.shape[:-2], key.shape[:-2], value.shape[:-2]
    if first == second == third:
        return tuple(first)
    try:
        return tuple(torch.broadcast_shapes(first, second, third))
    except RuntimeError:
        got = f"lead axes {tuple(first)}, {tuple(second)}, {tuple(third)}"
        message = format_message("query, key, value", got, "axes that broadcast", "make them equal, or 1 where shared")
        raise LeadError(message) from None
