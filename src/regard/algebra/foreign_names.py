"""What parts are called elsewhere, and what to write here: for messages about names that are not there."""

from collections.abc import Iterable

from regard.errors import find_nearest, format_message

LAYER = "regard.layers.Attention(64, heads=8)"
COUNTERPARTS = {
    "Attention": LAYER,
    "MultiheadAttention": f"{LAYER}, or Attention.from_torch(module)",
    "MultiHeadAttention": LAYER,
    "MultiHeadedAttention": LAYER,
    "SelfAttention": LAYER,
    "CrossAttention": f"{LAYER}, called with (x, source)",
    "scaled_dot_product_attention": "regard.attend(query, key, value)",
    "DotProductAttention": "regard.attend(query, key, value, score='dot')",
    "AdditiveAttention": "regard.Additive(query=64, key=64, hidden=128), a score for regard.attend",
    "BahdanauAttention": "regard.Additive(query=64, key=64, hidden=128), a score for regard.attend",
    "LuongAttention": "regard.Bilinear(64, 64), a score for regard.attend",
    "NWKernelRegression": "regard.attend(query, key, value, score='gaussian')",
    "PositionalEncoding": "regard.layers.Sinusoidal(64), LearnedPositions(512, 64) or Rotary(64)",
    "RotaryEmbedding": "regard.layers.Rotary(64)",
    "TransformerEncoderLayer": "regard.layers.EncoderBlock(64, heads=8)",
    "TransformerDecoderLayer": "regard.layers.DecoderBlock(64, heads=8)",
    "TransformerEncoderBlock": "regard.layers.EncoderBlock(64, heads=8)",
    "TransformerDecoderBlock": "regard.layers.DecoderBlock(64, heads=8)",
    "PositionWiseFFN": "regard.layers.FeedForward(64, 256)",
    "sequence_mask": "regard.Lengths(lengths), a mask for regard.attend",
    "sparsemax": "regard.Sparsemax()",
    "entmax15": "regard.Entmax(1.5)",
    "entmax_bisect": "regard.Entmax(alpha)",
}


def missing_name_error(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error of a name that a module does not have, with what to write instead.

    >>> str(missing_name_error("regard", "RotaryEmbedding", ["attend"]))
    'regard.RotaryEmbedding: got no such name, expected one of dir(regard); fix: write regard.layers.Rotary(64)'
    """
    instead = COUNTERPARTS.get(name) or f"{module}.{find_nearest(name, known)}"
    expected = f"one of dir({module})"
    return AttributeError(format_message(f"{module}.{name}", "no such name", expected, f"write {instead}"))
