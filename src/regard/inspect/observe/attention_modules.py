"""Which modules look like attention, by their names and their projections, and why some cannot be seen."""

import re

from torch import nn

from regard.algebra.shapes import Tensor

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
HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "heads", "nhead")
REASONS = (
    (r"Longformer|^LEDEncoder", "its weights are bands around the diagonal, which no table (queries, keys) holds"),
    (r"BlockSparse", "it computes blocks of keys apart, some of them chosen at random"),
    (
        r"LSHSelfAttention|^LocalSelfAttention|Reformer",
        "it sorts keys into buckets by hashing, or into chunks",
    ),
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
    """Whether its class is named so, or it has projections of queries and keys.

    >>> looks_like_attention(nn.MultiheadAttention(4, 2)), looks_like_attention(nn.Linear(4, 2))
    (True, False)
    """
    name = type(module).__name__
    if NOT_ATTENTION.search(name):
        return False
    return bool(NAME.search(name)) or has_projections(module)


def has_projections(module: nn.Module) -> bool:
    """Whether it has those of queries and keys, apart or in one."""
    own = {*module._modules, *module._parameters}
    return any(query in own and key in own for query, key in PAIRS) or any(name in own for name in PACKED)


def explain_unseen(module: nn.Module) -> str | None:
    """Why the weights of modules of this class cannot be seen; None if nothing is known against it."""
    name = type(module).__name__
    return next((reason for pattern, reason in REASONS if re.search(pattern, name)), None)


def count_heads(module: nn.Module) -> int | None:
    """How many heads the module says that it has, itself or in its config; None if it does not say."""
    for home in (module, getattr(module, "config", None)):
        for name in HEADS:
            number = getattr(home, name, None)
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    return None


def arrange_heads(weights: Tensor, heads: int | None) -> Tensor | None:
    """A table of weights as (batch, heads, queries, keys); None if it has other axes.

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
