"""The names of axes. Only this file invents them.

`lead` is every axis before the last two: batch, heads, groups. Tensors are broadcast, so grouped heads are a lead
axis of size one and not a flag.
"""

import torch
from jaxtyping import Bool as Bool
from jaxtyping import Float as Float
from jaxtyping import Int as Int
from jaxtyping import Integer as Integer
from torch import Tensor as Tensor

from regard.errors import wrong, wrong_kind

Queries = Float[Tensor, "*#lead query dim"]
Keys = Float[Tensor, "*#lead key dim"]
WideKeys = Float[Tensor, "*#lead key key_dim"]
GroupedKeys = Float[Tensor, "*keylead key key_dim"]
GroupedValues = Float[Tensor, "*valuelead key value"]
Values = Float[Tensor, "*#lead key value"]
Scores = Float[Tensor, "*#lead query key"]
Distribution = Float[Tensor, "*#lead query key"]
Allowed = Bool[Tensor, "*#lead #query #key"]
Output = Float[Tensor, "*lead query value"]


def widen(tensor: Tensor) -> Tensor:
    """Return a tensor in at least float32: half precision is computed there and rounded once."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def describe(thing: object) -> str:
    """Return an object in a few words, for messages.

    >>> describe(torch.zeros(2, 3))
    'a float32 tensor of shape (2, 3)'
    """
    if isinstance(thing, Tensor):
        return f"a {str(thing.dtype).removeprefix('torch.')} tensor of shape {tuple(thing.shape)}"
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    return repr(thing) if thing is None or isinstance(thing, int | float | str) else f"a {type(thing).__name__}"


def check_tensor(name: str, thing: object) -> Tensor:
    """Return the tensor; raise if it is something else."""
    if not isinstance(thing, Tensor):
        raise wrong_kind(name, describe(thing), "a tensor", "write torch.tensor(...)")
    return thing


COMPUTED = (torch.float32, torch.bfloat16, torch.float16, torch.float64)  # torch has no sums of narrower ones


def check_floats(name: str, thing: object) -> None:
    """Raise unless this is a dense tensor of real numbers, of one shape."""
    if not isinstance(thing, Tensor):
        several = isinstance(thing, list | tuple) and any(isinstance(one, Tensor) for one in thing)
        fix = "give them one after another: (query, source)" if several else "write torch.as_tensor(...)"
        raise wrong_kind(name, describe(thing), "a float tensor", fix)
    if thing.is_nested:
        fix = "write tensor.to_padded_tensor(0.0), with mask=Lengths(lengths)"
        raise wrong_kind(name, "a nested tensor", "a float tensor of one shape", fix)
    if thing.layout != torch.strided:
        got = f"a tensor of layout {str(thing.layout).removeprefix('torch.')}"
        raise wrong_kind(name, got, "a float tensor of dense layout", "write tensor.to_dense()")
    if thing.is_complex():
        raise wrong_kind(name, describe(thing), "a float tensor", "write torch.view_as_real(tensor).flatten(-2)")
    if not thing.is_floating_point():
        raise wrong_kind(name, describe(thing), "a float tensor", "write tensor.float(), or embed the tokens first")
    if thing.dtype not in COMPUTED:
        raise wrong_kind(name, describe(thing), "float32, float64, float16 or bfloat16", "write tensor.float()")


def broadcasts(own: tuple[int, ...], lead: tuple[int, ...]) -> bool:
    """Return whether lead axes of these sizes broadcast to `lead`."""
    padded = (1,) * (len(lead) - len(own)) + own
    return len(own) <= len(lead) and all(map(fits, padded, lead))


def fits(own: int, size: int) -> bool:
    """Return whether an axis of size `own` broadcasts to one of `size`."""
    return own == 1 or own == size  # not `in`: torch.compile then takes a traced size for a different one


def check_lead(name: str, own: tuple[int, ...], lead: tuple[int, ...]) -> None:
    """Raise unless a term's lead axes broadcast to those of the queries and keys."""
    if not broadcasts(own, lead):
        fix = "give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)"
        raise wrong(name, f"lead axes {own}", f"axes that broadcast to {lead}", fix)


def check_unambiguous_lead(name: str, own: tuple[int, ...], lead: tuple[int, ...]) -> None:
    """Raise if lead axes that a caller gave do not fit, or could be sequences as well as heads.

    >>> check_unambiguous_lead("mask.lengths", (3, 1), (3, 3))
    """
    check_lead(name, own, lead)
    short = len(own) < len(lead) and any(size > 1 for size in own)
    if short and all(map(fits, own, lead)):
        expected = f"no doubt whether they are the first or the last of {lead}"
        fix = "write tensor[:, None] if they are sequences, tensor[None] if they are heads"
        raise wrong(name, f"lead axes {own}", expected, fix)
