"""The words for axes. Only this file invents them.

`lead` is everything before the last two axes: batch, heads, groups. Two tensors meet by broadcasting, so
grouped heads are a lead axis of size one and not a flag.
"""

from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

from regard.errors import wrong, wrong_kind

Queries = Float[Tensor, "*#lead query dim"]
Keys = Float[Tensor, "*#lead key dim"]
WideKeys = Float[Tensor, "*#lead key key_dim"]
Values = Float[Tensor, "*#lead key value"]
Scores = Float[Tensor, "*#lead query key"]
Distribution = Float[Tensor, "*#lead query key"]
Allowed = Bool[Tensor, "*#lead #query #key"]
Output = Float[Tensor, "*lead query value"]
Indices = Int[Tensor, "..."]

__all__ = [
    "Allowed",
    "Bool",
    "Distribution",
    "Float",
    "Indices",
    "Int",
    "Integer",
    "Keys",
    "Output",
    "Queries",
    "Scores",
    "Tensor",
    "Values",
    "WideKeys",
    "check_floats",
    "check_lead",
    "check_own_lead",
    "check_tensor",
    "describe",
]


def describe(thing: object) -> str:
    """An object in a few words, for messages.

    >>> describe(torch.zeros(2, 3))
    'a float32 tensor of shape (2, 3)'
    """
    if isinstance(thing, Tensor):
        return f"a {str(thing.dtype).removeprefix('torch.')} tensor of shape {tuple(thing.shape)}"
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    return repr(thing) if thing is None or isinstance(thing, int | float | str) else f"a {type(thing).__name__}"


def check_tensor(name: str, thing: object) -> None:
    """Raise unless this is a tensor."""
    if not isinstance(thing, Tensor):
        raise wrong_kind(name, describe(thing), "a tensor", "write torch.tensor(...)")


def check_floats(name: str, thing: object) -> None:
    """Raise unless this is a tensor of real numbers, of one shape."""
    if not isinstance(thing, Tensor):
        raise wrong_kind(name, describe(thing), "a float tensor", "write torch.as_tensor(...)")
    if thing.is_nested:
        fix = "write tensor.to_padded_tensor(0.0), with mask=Lengths(lengths)"
        raise wrong_kind(name, "a nested tensor", "a float tensor of one shape", fix)
    if not thing.is_floating_point():
        raise wrong_kind(name, describe(thing), "a float tensor", "write tensor.float(), or embed the tokens first")


def fits(own: int, size: int) -> bool:
    """Return whether an axis of size `own` broadcasts to one of `size`."""
    return own == 1 or own == size  # asked with `in`, a compiler takes a traced size for another one


def check_lead(name: str, own: tuple[int, ...], lead: tuple[int, ...]) -> None:
    """Raise where a term's lead axes do not broadcast to those of the queries and keys."""
    padded = (1,) * (len(lead) - len(own)) + own
    if len(own) > len(lead) or not all(map(fits, padded, lead)):
        fix = "give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)"
        raise wrong(name, f"lead axes {own}", f"axes that broadcast to {lead}", fix)


def check_own_lead(name: str, own: tuple[int, ...], lead: tuple[int, ...]) -> None:
    """Raise where lead axes that a caller gave do not fit, or fit sequences as well as heads.

    >>> check_own_lead("mask.lengths", (3, 1), (3, 3))
    """
    check_lead(name, own, lead)
    short = len(own) < len(lead) and any(size > 1 for size in own)
    if short and all(map(fits, own, lead)):
        expected = f"no doubt whether they are the first or the last of {lead}"
        fix = "write tensor[:, None] if they are sequences, tensor[None] if they are heads"
        raise wrong(name, f"lead axes {own}", expected, fix)
