"""What parts are called elsewhere, and what to write here: for messages about names that are not there."""

import difflib
from collections.abc import Iterable
from operator import attrgetter

from torch import nn

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
DRAWN = "regard.view(weights), or a figure: from regard.inspect.draw.alignment import draw_alignment, or head_grid"
DRAWINGS = dict.fromkeys(
    ["draw", "plot", "show", "heatmap", "show_heatmaps", "draw_heatmap", "plot_attention", "head_view", "model_view"],
    DRAWN,
)
DRAWINGS["save"] = "recording.save(path); for a figure: from regard.inspect.draw.output import save_figure"
ORDER = ("score", "mask", "normalizer", "bias")
PREFIXES = ("", "attention.")
SUFFIXES = ("attention", "matrixattention", "score", "mask", "bias", "kernel", "layer")
RESULTS = {
    "context": "result.output",
    "weight": "result.weights",
    "attn": "result.weights",
    "scores": "result.weights, which are normalized; regard.ScaledDot()(query, key) are scores",
}
# What modules of other libraries keep of a call; here nothing is kept.
KEPT = """
weights attention_weights attn_weights attn attention attentions attention_probs attention_scores alpha alphas
align_vectors last_attention get_attention get_attention_weights attention_map attn_map attn_output_weights"""
# Where a part is here, and what other libraries call it: in an attention layer, or in that of a block.
PLACES = {
    "projections.heads": "heads num_heads nhead n_heads n_head h num_attention_heads",
    "projections.groups": "groups num_kv_heads kv_heads num_key_value_heads",
    "projections.output": "out_proj o_proj W_o wo c_proj proj to_out output_dense out_linear",
    "projections.input": "in_proj_weight in_proj qkv c_attn q_proj k_proj v_proj W_q W_k W_v wq wk wv to_q to_k to_v",
    "mechanism.score": "score score_function scoring similarity",
    "attention": "self_attn self_attention mha attention1 slf_attn",
    "source": "multihead_attn cross_attn cross_attention encoder_attn attention2 enc_attn",
    "feed_forward": "ffn mlp linear1 linear2 pos_ffn ff",
    "attention_residual": "norm1 addnorm1 sublayer",
}


def find_counterpart(name: str) -> str:
    """Return what a part or layer of another library is called here; empty if none is known.

    >>> find_counterpart("CosineAttention"), find_counterpart("RBF"), find_counterpart("Adam")
    ('regard.Cosine', 'regard.Gaussian', '')
    """
    if name in COUNTERPARTS or name in DRAWINGS:
        return COUNTERPARTS.get(name) or DRAWINGS[name]
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


def missing_attribute_error(module: nn.Module, name: str) -> AttributeError:
    """Return the error of an attribute that a layer or model does not have, with what to write instead.

    >>> str(missing_attribute_error(nn.Linear(2, 3), "in_feature"))
    'layer.in_feature: got no such attribute, expected one of dir(layer); fix: write layer.in_features'
    """
    title = "model" if type(module).__module__.startswith("regard.models") else "layer"
    near = difflib.get_close_matches(name, [one for one in dir(module) if one[0] != "_"], n=1, cutoff=0.8)
    place = find_place(module, name) or (near[0] if near else "")
    fix = f"write {title}.{place}" if place else f"print({title}) shows its parts"
    if name in KEPT.split():
        observed = f"with regard.observe({title}) as recording: {title}(…)"
        fix = f"write output, weights = {title}.attend(…)" if hasattr(module, "attend") else f"write {observed}"
        return AttributeError(format_message(f"{title}.{name}", "nothing kept of a call", "a call", fix))
    return AttributeError(format_message(f"{title}.{name}", "no such attribute", f"one of dir({title})", fix))


def find_place(module: nn.Module, name: str) -> str:
    """Return where the part of a module is that other libraries have under this name; empty if it has none."""
    for path in (f"{prefix}{place}" for place, names in PLACES.items() if name in names.split() for prefix in PREFIXES):
        try:
            attrgetter(path)(module)
        except AttributeError:
            continue
        return path
    return ""


def explain_attributes(part: type[nn.Module]) -> None:
    """Let a class of modules say what to write for attributes that it does not have."""

    def get_attribute(self: nn.Module, name: str) -> object:
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            if name.startswith("_"):
                raise
        raise missing_attribute_error(self, name)

    setattr(part, "__getattr__", get_attribute)  # noqa: B010
