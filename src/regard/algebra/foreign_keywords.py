"""What other libraries call an argument, and what to write here: Python's own refusal names neither."""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from regard.errors import wrong_kind

Class = TypeVar("Class", bound=type)
Call = TypeVar("Call", bound=Callable[..., Any])

# Other names of a parameter, that mean the same.
SYNONYMS = {
    "query": "queries q x src tgt hidden_states inputs vector query_size query_dim vector_dim dunits tensor_1_dim",
    "key": "keys k matrix key_size memory_dim memory_size matrix_dim eprojs tensor_2_dim",
    "value": "values v",
    "source": "value values context memory encoder_hidden_states kdim vdim kv_dim dim_context encoder_dim",
    "state": "memory encoder_hidden_states enc_outputs",
    "size": "input_size embed_dim d_model dim hidden_size embed_size num_hiddens model_dim n_embd units",
    "heads": "num_heads nhead n_heads n_head head_num num_attention_heads",
    "groups": "num_kv_heads num_key_value_heads kv_heads n_kv_heads num_query_groups",
    "dropout": "dropout_p p attn_dropout dropout_rate attention_dropout attn_pdrop",
    "hidden": "dim_feedforward ffn_num_hiddens d_ff intermediate_dim intermediate_size ff_dim ff_size num_hiddens "
    "hidden_size units att_dim attention_dim attn_dim",
    "stream": "src tgt hidden_states inputs x query",
    "bandwidth": "sigma width h length_scale",
    "lengths": "valid_lens valid_len valid_length memory_lengths",
    "before": "window window_size radius left",
    "base": "theta rope_theta max_timescale",
    "count": "num_buckets relative_attention_num_buckets",
    "farthest": "max_distance",
    "alpha": "temperature",
    "normalizer": "probability_fn attn_func normalize attention_activation",
    "score": "attention_type attn_type attention_option score_fn score_mode method alignment",
    "scaling": "rope_scaling scaling_factor rope_parameters",
    "channels": "aconv_chans num_channels",
    "rotated": "rotary_dim partial_rotary_factor rotary_ndims",
}
EXAMPLES = {
    "attend": "attend(query, key, value), or attend(query, key, key) if keys are the values",
    "Attention": "Attention(64, heads=8), the width of the vectors first",
    "Window": "Window(before=3, after=3)",
}
BLOCK = 'EncoderBlock(64, heads=8)(x, mask="causal")'
HIDES = "if True hides keys, mask=Mask.keep_keys(…) if True allows them"
PADDING = f"mask=Mask.drop_keys(…) {HIDES}, mask=Lengths(lengths) if you have lengths"
TABLE = (
    "mask=Mask.keep(…) if True allows, mask=Mask.drop(…) if True hides, bias=Dense(…) if numbers are added to scores"
)
OWN_PADDING = PADDING.replace("mask=", "real=")
CAUSAL = 'mask="causal", or mask=Causal.from_first() if queries do not end with the keys'
BEGIN = "state=block.begin(source, mask=Mask.drop_keys(…))"
WEIGHTS = "output, weights = layer.attend(…), which has no such switch"

# What is said otherwise here: the parameter that says it, and how. The first that the call has counts; "" is any call.
PHRASES: dict[str, dict[str, str]] = {
    "attn_mask": {"mask": TABLE},
    "attention_mask": {"real": OWN_PADDING, "mask": f"{TABLE}; {PADDING}"},
    "src_mask": {"mask": TABLE},
    "tgt_mask": {"mask": TABLE},
    "matrix_mask": {"mask": PADDING},
    "memory_mask": {"state": BEGIN},
    "key_padding_mask": {"real": OWN_PADDING, "mask": PADDING},
    "src_key_padding_mask": {"real": OWN_PADDING, "mask": PADDING},
    "tgt_key_padding_mask": {"real": OWN_PADDING, "mask": PADDING},
    "memory_key_padding_mask": {"state": BEGIN},
    "padding_mask": {"real": OWN_PADDING, "mask": PADDING},
    "context_mask": {"mask": PADDING},
    "valid_lens": {"lengths": "lengths=…", "real": "real=Lengths(valid_lens)", "mask": "mask=Lengths(valid_lens)"},
    "is_causal": {"state": "nothing: a decoder block is causal", "mask": CAUSAL, "heads": f"it in the call: {BLOCK}"},
    "tgt_is_causal": {"state": "nothing: a decoder block is causal"},
    "use_causal_mask": {"mask": CAUSAL},
    "causal": {"mask": CAUSAL, "heads": 'it in the call: layer(x, mask="causal")'},
    "lengths": {"mask": "mask=Lengths(lengths)"},
    "window": {"mask": "mask=Window(before=…, after=…)"},
    "units": {"hidden": "hidden=…, with query= and key= for the widths of both", "query": "query=…, and key=…"},
    "coverage": {"score": "LocationFeatures or Coverage of regard.layers in a decoder, or --attention.coverage true"},
    "temperature": {"normalizer": "normalizer=Softmax(temperature=…)"},
    "dropout": {"query": "attend(…, dropout=…): weights are dropped there", "temperature": "attend(…, dropout=…)",
                "base": "nn.Dropout(…) behind it"},
    "qk_norm": {"score": "score=Cosine(temperature=0.1)"},
    "use_scale": {"": "score=Dot(), or score=ScaledDot(), which divides by the root of the width"},
    "use_bias": {"": "Projections with linear maps of your own as size: nn.Linear(…, bias=False)"},
    "add_bias_kv": {"": "keys and values with a row of your own in front: torch.cat"},
    "flash": {"": "nothing: the fastest backend is chosen, and plan.explain() says which"},
    "max_position_embeddings": {"most": "most=…", "count": "count=…", "": "nothing: positions have no end"},
    "dim": {"size": "size=…", "": "nothing: rows are the last axis"},
    "key": {"source": "source=…"},
    "value": {"content": "content=… (source=… if there is no key)", "source": "source=…"},
    "hidden": {"feed_forward": "feed_forward=FeedForward(64, 256)"},
    "interleaved": {"layout": 'layout="neighbors" if True, layout="halves" if False'},
    "previous": {"normalizer": "normalizer=Monotonic(previous=…)"},
    "need_weights": {"backend": "output, weights = attend(…), which has no such switch", "": WEIGHTS},
    "average_attn_weights": {"": "weights.dense().mean(-3) of what layer.attend(…) returns"},
    "scale": {"score": "score=ScaledDot() (the default) or score=scale * Dot()", "": "scale * Dot(), which is a score"},
    "enable_gqa": {"": "nothing: fewer heads of keys than of queries are grouped"},
    "batch_first": {"": "nothing: the batch is always first"},
    "training": {"dropout": "dropout=0 in evaluation; a layer's train() and eval() say it"},
    "norm_first": {"residual": "residual=PreNorm (the default, norm first) or residual=PostNorm"},
    "layer_norm_eps": {"residual": "residual=PreNorm.with_eps(1e-6)"},
    "dim_feedforward": {"hidden": "hidden=…", "feed_forward": "feed_forward=FeedForward(64, 256)"},
    "activation": {"feed_forward": "feed_forward=FeedForward(64, 256, activation=nn.GELU())"},
    "past_key_values": {"before": "before=…, the memory that attend_self returned"},
    "use_cache": {"": "layer.attend_self(x, before=memory), which returns the memory"},
    "rotary_pos_emb": {"rotary": "rotary=Rotary(width of a head)"},
    "alibi_pos_bias": {"bias": "bias=ALiBi(heads)"},
    "position_bias": {"bias": "bias=Dense(…), or Relative(heads), which is learned"},
    "head_dim": {"size": "size = heads × width, or Projections with linear maps of your own as size"},
    "device": {"": "layer.to(device)"},
    "dtype": {"": "layer.to(dtype)"},
}  # fmt: skip
for _same, _names in {
    "valid_lens": "valid_len valid_length memory_lengths memory_sequence_length key_lengths src_lengths enc_len hlens",
    "flash": "attn_flash use_flash_attention flash_attention attn_implementation sdp_kwargs",
    "use_bias": "qkv_bias attention_bias qkv_proj_bias",
    "max_position_embeddings": "max_seq_len max_seq_length max_len max_length",
    "window": "window_size sliding_window attention_window",
    "coverage": "coverage_attn",
    "dim_feedforward": "ffn_num_hiddens d_ff ff_size intermediate_dim intermediate_size",
    "need_weights": "return_weights return_attention return_attention_weights return_attention_scores "
    "output_attentions return_attn return_attn_weights",
    "interleaved": "rotary_interleaved rope_interleaved",
    "value": "values",
    "key": "keys",
    "head_dim": "dim_head key_dim value_dim attention_head_size",
    "layer_norm_eps": "eps norm_eps layer_norm_epsilon",
}.items():
    PHRASES |= dict.fromkeys(_names.split(), PHRASES[_same])


def explain_call(function: Call, owner: type | None = None) -> Call:
    """Return the function, whose refusal of a keyword or of one argument too many says what to write here."""
    own = _list_parameters(function)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            _raise_ours(function, owner, own, args, keywords)
            raise

    return call  # type: ignore[return-value]


def explain_calls(part: Class) -> Class:
    """Let the constructor and the public methods of a class say what to write for arguments that they do not have."""
    constructor = part.__init__  # type: ignore[misc]
    methods = {name: method for name, method in vars(part).items() if inspect.isfunction(method) and name[0] != "_"}
    for name, method in {**methods, "__init__": constructor}.items():
        if constructor is not object.__init__ or name != "__init__":
            setattr(part, name, explain_call(method, part))
    return part


def describe_keyword(keyword: str, own: list[str], given: object) -> str:
    """Return what to write for a keyword of another library, or for one that is misspelled.

    >>> describe_keyword("num_heads", ["size", "heads"], 8)
    'heads=8'
    >>> describe_keyword("need_weights", ["query"], True)
    'output, weights = layer.attend(…), which has no such switch'
    """
    shown = repr(given) if isinstance(given, int | float | str) else "…"
    for parameter, phrase in PHRASES.get(keyword, {}).items():
        if parameter in own or not parameter:
            return phrase.replace("…", shown) if phrase == f"{parameter}=…" else phrase
    meant = [name for name in own if keyword in SYNONYMS.get(name, "").split()]
    meant = meant or difflib.get_close_matches(keyword, own, n=1)
    return f"{meant[0]}={shown}" if meant else f"it without {keyword}"


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return what may be given to a function; nothing to the constructor of a module without settings."""
    if function is nn.Module.__init__:
        return []
    return [one for one in inspect.signature(function).parameters.values() if one.name != "self"]


def _raise_ours(
    function: Callable[..., Any],
    owner: type | None,
    own: list[inspect.Parameter],
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> None:
    """Raise our error if Python refused these arguments; return if something else was wrong."""
    if any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in own):
        return
    title = getattr(function, "__name__", "") if owner is None else owner.__name__
    if owner is not None and function.__name__ not in ("__init__", "forward"):
        title = f"{title}.{function.__name__}"
    names, kinds = [one.name for one in own], {kind.__name__.lower() for kind in (owner.__mro__ if owner else ())}
    foreign = [keyword for keyword in keywords if keyword not in names]
    if foreign:
        got = f"keyword{'s' if foreign[1:] else ''} {', '.join(foreign)}"
        expected = f"one of {', '.join(names)}" if names else "no settings"
        fix = ", ".join(describe_keyword(keyword, names, keywords[keyword]) for keyword in foreign)
        raise wrong_kind(title, got, expected, f"write {fix}") from None
    places = [one.name for one in own if one.kind is not one.KEYWORD_ONLY]
    count = len(args) - (owner is not None)
    needed = [one.name for one in own if one.default is one.empty and one.name not in (*places[:count], *keywords)]
    if needed:
        call = (
            EXAMPLES.get(title) or f"{title}({', '.join(f'{one.name}=…' for one in own if one.default is one.empty)})"
        )
        raise wrong_kind(title, f"no {', '.join(needed)}", f"{', '.join(names)}", f"write {call}") from None
    if count > len(places):
        got = f"{count} argument{'s' if count > 1 else ''}"
        if "score" in kinds:
            fix = f"write attend(query, key, value, score={title}(…), mask=Lengths(lengths))"
            raise wrong_kind(title, got, "query and key: it is a score", fix) from None
        rest = ", ".join(f"{name}=…" for name in names if name not in places)
        expected = f"at most {len(places)} without a name ({', '.join(places)})" if places else "no settings"
        raise wrong_kind(title, got, expected, f"name it: {rest}" if rest else "leave it out") from None
