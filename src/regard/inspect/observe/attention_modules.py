"""Recognize modules that are attention by their names and projections, and explain why some cannot be observed."""

import re
from collections.abc import Collection, Iterable

from torch import nn

from regard.algebra.shapes import Tensor
from regard.inspect.observe.sites import Site

NAME = re.compile(r"Attention|Attn|MHA$")
NOT_ATTENTION = re.compile(r"(Output|Norm|Dropout|Mask|Embeddings?|Bias|Gate|Router|Indexer)$")
PAIRS = (
    ("q_proj", "k_proj"),
    ("query_proj", "key_proj"),
    ("query", "key"),
    ("q_lin", "k_lin"),
    ("to_q", "to_k"),
    ("wq", "wk"),
    ("W_q", "W_k"),
    ("q", "k"),
)
PACKED = ("qkv", "qkv_proj", "query_key_value", "c_attn", "Wqkv", "to_qkv")
MAX_NAMES = 3  # names in a note; there may be a hundred layers
HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "heads", "nhead")
REASONS = (
    (r"Longformer|^LEDEncoder", "its weights are bands around the diagonal, which no table (queries, keys) holds"),
    (r"BlockSparse", "it computes blocks of keys apart, some of them chosen at random"),
    (r"LSHSelfAttention|^LocalSelfAttention|Reformer", "it sorts keys into buckets by hashing, or into chunks"),
    (r"LongT5|Pegasus\w*Global|PegasusXGlobal", "it computes local blocks and global tokens apart"),
    (r"Nystrom", "its weights are a product of three tables through landmarks"),
    (r"Yoso|Mra", "its weights are approximated, and no table of them is computed"),
    (r"Rwkv|Linear|Delta|Lightning|Recurrent|SSM", "it is linear in the length and computes no table of weights"),
)
UNKNOWN = (
    "it looks like attention, and no softmax of (batch, heads, queries, keys) was computed in it; "
    "let it call F.scaled_dot_product_attention, or torch's softmax on such scores"
)


def looks_like_attention(module: nn.Module) -> bool:
    """Return whether a module's class is named attention, or it has projections of queries and keys.

    >>> looks_like_attention(nn.MultiheadAttention(4, 2)), looks_like_attention(nn.Linear(4, 2))
    (True, False)
    """
    name = type(module).__name__
    if NOT_ATTENTION.search(name):
        return False
    return bool(NAME.search(name)) or has_projections(module)


def has_projections(module: nn.Module) -> bool:
    """Return whether a module has projections of queries and keys, two of them or one that is packed."""
    names = {*module._modules, *module._parameters}
    return any(names.issuperset(pair) for pair in PAIRS) or not names.isdisjoint(PACKED)


def explain_unseen(module: nn.Module) -> str | None:
    """Return why the weights of modules of this class cannot be observed; None if no reason is known."""
    name = type(module).__name__
    return next((reason for pattern, reason in REASONS if re.search(pattern, name)), None)


def count_heads(module: nn.Module) -> int | None:
    """Return the number of heads that a module or its config has as an attribute; None if neither has."""
    for owner in (module, getattr(module, "config", None)):
        for name in HEADS:
            number = getattr(owner, name, None)
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    return None


def arrange_heads(weights: Tensor, heads: int | None) -> Tensor | None:
    """Return a table of weights as (batch, heads, queries, keys); None if it has other axes.

    Heads may be folded into the batch, or divided into groups.
    """
    if weights.dim() == 4:
        return weights if heads in (None, weights.shape[1]) else None
    if heads is None:
        return weights[:, None] if weights.dim() == 3 else None
    if weights.dim() == 3 and weights.shape[0] % heads == 0:
        return weights.view(-1, heads, *weights.shape[1:])
    if weights.dim() == 5 and weights.shape[1] * weights.shape[2] == heads:
        return weights.flatten(1, 2)
    return None


def describe_unseen(called: Iterable[Site], known: Collection[str]) -> list[str]:
    """Return a note for each class whose modules look like attention and are neither `known` nor have known parts.

    Of two such modules, one inside the other, only the inner one is named.
    """
    alike = [site for site in called if looks_like_attention(site.module)]
    names = {site.name for site in alike}
    classes: dict[type, list[Site]] = {}
    for site in alike:
        if not _is_covered(site.name, known, names):
            classes.setdefault(type(site.module), []).append(site)
    return [_format_note(kind.__name__, sites) for kind, sites in classes.items()]


def _is_covered(name: str, known: Collection[str], alike: Collection[str]) -> bool:
    inside = any(other.startswith(f"{name}.") for other in (*known, *alike))
    around = any(name.startswith(f"{other}.") for other in known if other in alike)
    return name in known or inside or around


def _format_note(kind: str, sites: list[Site]) -> str:
    names = ", ".join(site.name for site in sites[:MAX_NAMES])
    more = f" and {len(sites) - MAX_NAMES} more" if len(sites) > MAX_NAMES else ""
    return f"{names}{more}: not seen: {kind}: {explain_unseen(sites[0].module) or UNKNOWN}"
