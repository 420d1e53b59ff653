"""Every architecture of transformers, built small from its config, and what observing it shows."""

import copy
import inspect
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from regard import observe
from tests.inspect.observe.checking import tensors_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers
    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

MOST = 2**25  # parameters of what is called small
SECONDS = 1.0  # in which it has to be built
HIDDEN, HEADS, LENGTH, BATCH, VOCABULARY = 32, 4, 8, 2, 99
NUMBERS = {
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_encoder_layers depth e_layers "
    "num_decoder_layers encoder_num_hidden_layers decoder_num_hidden_layers encoder_depth decoder_depth d_layers "
    "num_experts_per_tok moe_k moe_top_k moe_topk num_key_value_heads encoder_num_key_value_heads num_block_layers "
    "decoder_num_key_value_heads n_group topk_group num_kv_heads multi_query_group_num num_blocks layers "
    "num_attention_layers num_mem_blocks prenet_layers block_depth num_hidden_groups swin_depth",
    HEADS: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads heads "
    "encoder_num_attention_heads decoder_num_attention_heads num_experts num_local_experts n_routed_experts "
    "moe_num_experts index_n_heads attention_heads nheads patch_size",
    8: "head_dim d_kv kv_channels q_lora_rank kv_lora_rank qk_nope_head_dim v_head_dim attention_head_dim "
    "index_head_dim attention_head_size global_head_dim qk_head_dim d_head qk_rope_head_dim rotary_dim",
    HIDDEN: "hidden_size d_model n_embd dim embed_dim embedding_size encoder_hidden_size decoder_hidden_size "
    "d_embed projection_dim hidden_dim word_embed_proj_dim cross_attention_hidden_size n_embed lru_width "
    "decoder_embed_dim encoder_embed_dim conv_dim mask_feature_size feature_size fpn_feature_size "
    "decoder_dim encoder_dim d_latents embed_size model_dim emb_dim entity_emb_size",
    64: "intermediate_size ffn_dim d_ff n_inner encoder_ffn_dim decoder_ffn_dim d_inner feed_forward_size "
    "moe_intermediate_size shared_expert_intermediate_size encoder_intermediate_size decoder_intermediate_size "
    "max_position_embeddings n_positions max_source_positions max_target_positions intermediate_size_mlp "
    "encoder_feedforward_dim decoder_feedforward_dim dim_feedforward ffn_hidden_size",
    VOCABULARY: "vocab_size n_words entity_vocab_size encoder_vocab_size decoder_vocab_size text_vocab_size "
    "vocab_size_per_layer_input",
    16: "image_size latent_dim index_topk",
    0: "pad_token_id",
    1: "bos_token_id decoder_start_token_id eos_token_id sep_token_id mask_token_id image_token_id",
    3: "image_token_index video_token_id audio_token_id image_token boi_token_id eoi_token_id",
}
SIZES = {name: number for number, names in NUMBERS.items() for name in names.split()}
LAYERS = {name: 2 for name in NUMBERS[2].split() if "layer" in name or "depth" in name}
DEEP = {**SIZES, **dict.fromkeys(LAYERS, 8)}  # of some, the first layers have no attention
BROAD, BROADER = ({**SIZES, "hidden_size": 4 * head, "head_dim": head} for head in (64, 128))  # three axes of rotation
ABSENT = ("head_dim", "num_key_value_heads", "vocab_size", "num_experts_per_tok")  # some configs have none
PLAIN = {**LAYERS, **{name: SIZES[name] for name in (*NUMBERS[VOCABULARY].split(), *NUMBERS[0].split())}}


@dataclass
class Row:
    """One architecture: what was built of it, and what was seen."""

    name: str
    kind: str = ""
    sites: int = 0
    calls: int = 0
    identical: bool | None = None
    equal: int = 0
    given: int = 0
    notes: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)


def list_architectures() -> list[str]:
    """Return those of which transformers can make a model without a head, causal or sequence-to-sequence."""
    return sorted({name for mapping in MAPPINGS for name in mapping if name in CONFIG_MAPPING_NAMES})


MAPPINGS = (
    auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    auto.MODEL_MAPPING_NAMES,
)


def look_at(name: str) -> Row:
    """Build it, observe a forward pass, compare; whatever is raised on the way is a reason of the row."""
    row = Row(name)
    try:
        model = build(name)
    except Exception as error:
        row.why = f"not built: {shorten(error)}"
        return row
    row.kind = type(model).__name__
    try:
        inputs = next(list_inputs(model))
    except Exception as error:
        row.why = f"not run: {shorten(error)}"
        return row
    compare(model, inputs, row)
    return row


def compare(model: Any, inputs: dict[str, Any], row: Row) -> None:
    """Observe a forward pass and fill the row."""
    with torch.no_grad():
        before, again = run(model, inputs), run(model, inputs)
        with observe(model) as recording:
            after = run(model, inputs)
    if not are_equal(before, again):
        row.why = "gives other numbers each time"
    else:
        row.identical = are_equal(before, after)
    row.sites, row.calls = len({name.split("#")[0] for name in recording}), len(recording)
    row.notes = list(recording.notes)
    tables = own_weights(model, inputs)
    row.given = len(tables)
    row.equal = sum(any(are_alike(seen.dense(), table) for seen in recording.values()) for table in tables)


def are_alike(seen: torch.Tensor, table: torch.Tensor) -> bool:
    """Return whether they are the same weights; rows that see nothing are zeros for some and uniform for others."""
    if seen.shape != table.shape:
        return False
    real = seen.sum(-1) > 0.5
    return bool(real.any()) and torch.allclose(seen[real], table.float()[real], atol=1e-4)


def own_weights(model: Any, inputs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the first item of what the model itself gives for `output_attentions=True`."""
    try:
        other = build_twin(model)
        with torch.no_grad():
            torch.manual_seed(0)
            output = other(**inputs, output_attentions=True)
    except Exception:  # some do not know the argument
        return []
    tables = [table for key in output for table in tensors_of(output[key]) if key.endswith("attentions")]
    return [table[0] for table in tables if table.dim() == 4]


def build_twin(model: Any) -> Any:
    """Return a new copy of the model with eager attention: not all can be changed."""
    config = copy.deepcopy(model.config)
    for part in (config, *(part for part in vars(config).values() if isinstance(part, transformers.PreTrainedConfig))):
        part._attn_implementation = "eager"
    other = type(model)(config).eval()
    other.load_state_dict(model.state_dict())
    return other


def run(model: Any, inputs: dict[str, Any]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return tensors_of(dict(model(**inputs)))


def are_equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a, b) or bool(a.isnan().any()) for a, b in zip(one, other, strict=True)
    )


def build(name: str) -> Any:
    """Return the model with two layers and little width; if these do not go together, with its own width."""
    kind = next(mapping[name] for mapping in MAPPINGS if name in mapping)
    maker = getattr(transformers, kind if isinstance(kind, str) else kind[0])
    config_class = getattr(transformers, CONFIG_MAPPING_NAMES[name])
    reasons = []
    for sizes in (SIZES, DEEP, BROAD, BROADER, PLAIN):
        try:
            config = shrink(config_class, sizes)
            with torch.device("meta"):
                count = sum(p.numel() for p in maker(config).parameters())
            if count > MOST:
                raise ValueError(f"{count:,} parameters at its smallest")
            config, start = shrink(config_class, sizes), time.monotonic()
            model = maker(config).eval()
            took = time.monotonic() - start
            if took > 10 * SECONDS:
                raise ValueError(f"takes {took:.0f} s to be built")
            next(list_inputs(model))
        except Exception as error:
            reasons.append(error)
        else:
            return model
    raise reasons[0]


def shrink(kind: type, sizes: dict[str, int]) -> Any:
    """Return a config with these sizes, also in its parts."""
    plain, chosen = kind(), {}
    for name, value in vars(plain).items():
        if isinstance(value, transformers.PreTrainedConfig):
            chosen[name] = shrink(type(value), sizes)
        elif name in ABSENT and value is None:
            chosen[name] = sizes.get(name)
        elif name == "attention_types":  # of GPT-Neo, which counts its layers there
            chosen[name] = [[["global", "local"], 1]]
        elif name in sizes and isinstance(value, int) and not isinstance(value, bool):
            chosen[name] = min(sizes[name], value) if name not in NUMBERS[0] + NUMBERS[1] + NUMBERS[3] else sizes[name]
        elif name in ("depths", "num_attention_heads", "num_heads") and isinstance(value, list | tuple):
            chosen[name] = [1 if name == "depths" else 2 for _ in value]
        elif isinstance(value, dict) and "mrope_section" in value:
            chosen[name] = {**value, "mrope_section": [2, 1, 1]}
        elif name in ("hidden_sizes", "embed_dims") and isinstance(value, list | tuple):
            chosen[name] = [16 for _ in value]
    if "kv_lora_rank" in chosen and "num_key_value_heads" in chosen:  # latent attention has no groups
        chosen["num_key_value_heads"] = chosen["num_attention_heads"]
    return kind(**chosen)


def list_inputs(model: Any) -> Iterator[dict[str, Any]]:
    """Yield inputs that the model takes; if it takes none, raise its error for the first ones."""
    known = inspect.signature(model.forward).parameters
    config, first = model.config, None
    for names in TRIES:
        if not set(names) <= set(known):
            continue
        inputs = {name: make_input(name, config) for name in names}
        try:
            with torch.no_grad():
                model(**inputs)
        except Exception as error:
            first = first or error
            continue
        yield inputs
    raise first or ValueError(f"takes {', '.join(known)}")


TRIES = (
    ("input_ids",),
    ("input_ids", "decoder_input_ids"),
    ("input_ids", "bbox"),
    ("pixel_values",),
    ("input_ids", "pixel_values"),
    ("input_values",),
    ("input_features",),
    ("input_features", "decoder_input_ids"),
    ("input_values", "decoder_input_ids"),
    ("input_values", "decoder_input_values"),
    ("pixel_values", "decoder_input_ids"),
    ("input_ids", "input_features"),
    ("pixel_values_videos",),
    ("past_values",),
    ("inputs",),
    ("inputs_embeds",),
)


def make_input(name: str, config: Any) -> torch.Tensor:
    """Return an input of that name."""
    generator = torch.Generator().manual_seed(1)

    def find(*names: str, default: int) -> int:
        homes = [
            config,
            *(value for value in vars(config).values() if isinstance(value, transformers.PreTrainedConfig)),
        ]
        found = [getattr(home, name, None) for home in homes for name in names]
        numbers = [number[0] if isinstance(number, list | tuple) else number for number in found if number]
        return next((number for number in numbers if isinstance(number, int)), default)

    if name.endswith("input_ids"):
        return torch.randint(5, find("vocab_size", default=VOCABULARY) - 1, (BATCH, LENGTH), generator=generator)
    side, channels = find("image_size", default=64), find("num_channels", "in_channels", default=3)
    shapes = {
        "bbox": (BATCH, LENGTH, 4),
        "pixel_values": (BATCH, channels, side, side),
        "pixel_values_videos": (BATCH, find("num_frames", "frames_per_clip", default=2), channels, side, side),
        "input_values": (BATCH, 2000),
        "decoder_input_values": (BATCH, LENGTH, find("num_mel_bins", default=80)),
        "input_features": (BATCH, find("num_mel_bins", default=80), 2 * find("max_source_positions", default=64)),
        "past_values": (BATCH, find("context_length", "prediction_length", default=16), find("input_size", default=1)),
        "inputs": (BATCH, LENGTH, find("d_model", default=HIDDEN)),
        "inputs_embeds": (BATCH, LENGTH, find("hidden_size", "d_model", default=HIDDEN)),
    }
    values = torch.randn(shapes[name], generator=generator)
    return torch.zeros(shapes[name], dtype=torch.long) if name == "bbox" else values


def shorten(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 90 else text[:89] + "…"
