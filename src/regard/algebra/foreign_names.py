"""What parts are called elsewhere, and what to write here: for messages about names that are not there."""

import difflib
from collections.abc import Iterable

from regard.errors import format_message

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
    "AddNorm": "regard.layers.PostNorm(64), norm behind the sum, or PreNorm; residual=PostNorm of a block",
    "AttentionWrapper": "regard.attend(query, key, value) in a loop, or train translation --preset luong-feeding",
    "GlobalAttention": "regard.Bilinear(64), a score for regard.attend, or regard train translation --preset luong",
    "GroupedQueryAttention": "regard.layers.Attention(64, heads=8, groups=2)",
    "GroupQueryAttention": "regard.layers.Attention(64, heads=8, groups=2)",
    "LinearAttention": "regard.FeatureDot(), a score for regard.attend with normalizer=regard.RowTotal()",
    "LinearMatrixAttention": "regard.layers.Trilinear(64), which regard.layers.AttentionFlow uses",
    "AttAdd": "regard.Additive.projected(128), a score for regard.attend",
    "AttDot": "regard.Dot(), a score for regard.attend",
    "AttLoc": "regard.layers.LocationFeatures(128, channels=10, width=201), or --preset location of speech",
    "Encoder": "regard.layers.EncoderBlock(64, heads=8) as often as you like, or regard.models.build_model",
    "Decoder": "regard.layers.DecoderBlock(64, heads=8) as often as you like, or regard.models.build_model",
    "Transformer": "regard.layers.EncoderBlock(64, heads=8), or regard.models.build_model",
    "TransformerWrapper": "regard.layers.EncoderBlock(64, heads=8), or regard.models.build_model",
    "CrossAttender": f"{LAYER}, called with (x, source)",
    "PositionwiseFeedForward": "regard.layers.FeedForward(64, 256)",
    "sequence_mask": "regard.Lengths(lengths), a mask for regard.attend",
    "make_pad_mask": "regard.Lengths(lengths), a mask for regard.attend",
    "subsequent_mask": "regard.Causal(), a mask for regard.attend",
    "sparsemax": "regard.Sparsemax()(scores), or normalizer='sparsemax' of regard.attend",
    "entmax15": "regard.Entmax15()(scores), or normalizer='entmax15' of regard.attend",
    "entmax_bisect": "regard.Entmax(alpha)(scores), or normalizer=regard.Entmax(alpha) of regard.attend",
}
ORDER = ("score", "mask", "normalizer", "bias")
SUFFIXES = ("attention", "matrixattention", "score", "mask", "bias", "kernel", "layer")
RESULTS = {
    "context": "result.output",
    "weight": "result.weights",
    "attn": "result.weights",
    "scores": "result.weights, which are normalized; regard.ScaledDot()(query, key) are scores",
}


def find_counterpart(name: str) -> str:
    """Return what a part or layer of another library is called here; empty if none is known.

    >>> find_counterpart("CosineAttention"), find_counterpart("RBF"), find_counterpart("Adam")
    ('regard.Cosine', 'regard.Gaussian', '')
    """
    if name in COUNTERPARTS:
        return COUNTERPARTS[name]
    from regard.algebra.catalog import FAMILIES, Sizes, list_names

    folded = name.lower().replace("_", "")
    bare = [folded, *(folded.removesuffix(suffix) for suffix in SUFFIXES if folded.endswith(suffix))]
    for family in ORDER:
        known = {alias.replace("-", ""): entry for alias, entry in list_names(family).items()}
        for one in bare:
            if one in known:
                return f"regard.{type(FAMILIES[family][known[one]].build(Sizes(4, 4, 4, (2,), 3, 3))).__name__}"
    return ""


def missing_name_error(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error of a name that a module does not have, with what to write instead.

    >>> str(missing_name_error("regard", "RotaryEmbedding", ["attend"]))
    'regard.RotaryEmbedding: got no such name, expected one of dir(regard); fix: write regard.layers.Rotary(64)'
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    instead = find_counterpart(name) or (f"{module}.{near[0]}" if near else "")
    fix = f"write {instead}" if instead else "see regard list, and docs/en/how-to/coming-from.md"
    return AttributeError(format_message(f"{module}.{name}", "no such name", f"one of dir({module})", fix))


def missing_result_error(name: str) -> AttributeError:
    """Return the error of a name that the result of `attend` does not have: it is no tensor, but output and weights.

    >>> str(missing_result_error("shape"))
    'result.shape: got output and weights, expected one of them; fix: write result.output.shape'
    """
    instead = RESULTS.get(name) or ("result.weights" if "weights" in name else f"result.output.{name}")
    return AttributeError(format_message(f"result.{name}", "output and weights", "one of them", f"write {instead}"))
