"""Models that write their attention out: it is seen, or a note names the module and says why not."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard import observe
from tests.inspect.observe.checking import close, observe_unchanged

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' own, which differ from release to release
SIZES = {"vocab_size": 37, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 19}
TOKENS = torch.tensor([[5, 6, 7, 8, 9], [11, 12, 13, 14, 15]])
CONFIGS: dict[str, Any] = {
    "Bloom": {"vocab_size": 37, "hidden_size": 24, "n_layer": 2, "n_head": 4},
    "GPTJ": {"vocab_size": 37, "n_embd": 24, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 32},
    "GPTNeo": {
        "vocab_size": 37,
        "hidden_size": 24,
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 32,
    },
    "XLNet": {"vocab_size": 37, "d_model": 24, "n_layer": 2, "n_head": 4, "d_inner": 19},
    "DebertaV2": SIZES,
    "Deberta": SIZES,
    "Falcon": {"vocab_size": 37, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4},
}


def build(name: str, **others: Any) -> Any:
    config = getattr(transformers, f"{name}Config")(**{**CONFIGS.get(name, {}), **others})
    config._attn_implementation = "eager"
    return getattr(transformers, f"{name}Model")(config).eval()


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("item", [0, 1])
def test_attention_that_is_written_out_is_seen(name: str, item: int) -> None:
    model = build(name)
    with torch.no_grad():
        expected = model(input_ids=TOKENS, output_attentions=True).attentions
        recording = observe_unchanged(model, lambda: model(input_ids=TOKENS), item=item)
    assert recording.notes == []
    assert len(recording) == len(expected) == 2
    for seen, table in zip(recording.values(), expected, strict=True):
        close(seen.dense(), table[item])


def test_attention_that_is_written_out_is_seen_before_dropout() -> None:
    model = build("Bloom", attention_dropout=0.5)
    expected = model(input_ids=TOKENS, output_attentions=True).attentions
    recording = observe_unchanged(model.train(), lambda: model(input_ids=TOKENS))
    close(recording["h.0.self_attention"].dense(), expected[0][0])


LONG = {**SIZES, "max_position_embeddings": 64}
REFORMER = {
    "vocab_size": 37,
    "hidden_size": 24,
    "num_attention_heads": 4,
    "attention_head_size": 6,
    "attn_layers": ["local", "lsh"],
    "axial_pos_embds": False,
    "max_position_embeddings": 32,
    "is_decoder": False,
    "num_hashes": 1,
    "num_buckets": 2,
    "local_attn_chunk_length": 4,
    "lsh_attn_chunk_length": 4,
    "feed_forward_size": 19,
}
BANDS = "its weights are bands around the diagonal, which no table (queries, keys) holds"
HASHES = "it sorts keys into buckets by hashing, or into chunks"
UNSEEN: dict[str, tuple[dict[str, Any], int, list[str]]] = {
    "Longformer": (
        {**LONG, "attention_window": 4},
        8,
        [f"encoder.layer.0.attention.self, encoder.layer.1.attention.self: not seen: LongformerSelfAttention: {BANDS}"],
    ),
    "BigBird": (
        {**LONG, "block_size": 2, "num_random_blocks": 1},
        32,
        [
            "encoder.layer.0.attention.self, encoder.layer.1.attention.self: not seen: BigBirdBlockSparseAttention: "
            "it computes blocks of keys apart, some of them chosen at random"
        ],
    ),
    "Reformer": (
        REFORMER,
        8,
        [
            f"encoder.layers.0.attention.self_attention: not seen: LocalSelfAttention: {HASHES}",
            f"encoder.layers.1.attention.self_attention: not seen: LSHSelfAttention: {HASHES}",
        ],
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_attention_that_cannot_be_seen_is_named(name: str, beside: bool) -> None:
    config, length, notes = UNSEEN[name]
    model = build(name, **config)
    tokens = torch.arange(length)[None] + 3
    pair = nn.ModuleDict({"one": model, "other": nn.MultiheadAttention(4, 2, batch_first=True)})
    x = torch.randn(1, 3, 4)
    with torch.no_grad(), observe(pair if beside else model) as recording:
        model(input_ids=tokens % 37)
        if beside:
            pair["other"](x, x, x, need_weights=False)
    assert list(recording) == (["other"] if beside else [])
    assert [note.replace("one.", "") for note in recording.notes] == notes


class OwnAttention(nn.Module):
    """Attention of somebody's own, whose weights are no softmax."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.kind = nn.Linear(4, 4), nn.Linear(4, 4), kind
        self.soft = nn.Softmax(dim=-1)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        scores = self.q_proj(x) @ self.k_proj(x).mT
        if self.kind == "module":
            return self.soft(scores) @ x, None
        if self.kind == "function":
            return torch.softmax(scores, -1) @ x, None
        if self.kind == "columns":
            return scores.softmax(dim=-2) @ x, None
        if self.kind == "features":
            return (x.softmax(-1) @ x.mT) @ x, None
        return scores.relu() @ x, None


@pytest.mark.parametrize("kind", ["module", "function"])
def test_projections_and_a_softmax_are_attention_whatever_the_class_is_called(kind: str) -> None:
    model, x = nn.Sequential(nn.Identity(), OwnAttention(kind)), torch.randn(2, 3, 4)
    recording = observe_unchanged(model, lambda: model(x), item=1)
    close(recording["1"].dense()[0], (model[1].q_proj(x) @ model[1].k_proj(x).mT).softmax(-1)[1])
    assert recording.notes == []
    assert observe_unchanged(model, lambda: model(x), item=2).notes == [
        "1: not seen: item 2 was asked for, and it computed 2"
    ]


@pytest.mark.parametrize("kind", ["relu", "columns"])
def test_what_is_no_softmax_over_keys_is_named(kind: str) -> None:
    model, x = nn.Sequential(OwnAttention(kind), nn.Identity()), torch.randn(2, 3, 4)
    recording = observe_unchanged(model, lambda: model(x))
    why = "it looks like attention, and no softmax of (batch, heads, queries, keys) was computed in it; "
    fix = "let it call F.scaled_dot_product_attention, or torch's softmax on such scores"
    assert (list(recording), recording.notes) == ([], [f"0: not seen: OwnAttention: {why}{fix}"])
    assert observe_unchanged(model, lambda: model(x), sites="1").notes == [
        "nothing was seen: no attention was computed in this thread outside of compiled graphs"
    ]


def test_many_layers_are_named_in_one_note() -> None:
    model, x = nn.ModuleList(OwnAttention("relu") for _ in range(5)), torch.randn(2, 3, 4)
    recording = observe_unchanged(model, lambda: [layer(x)[0] for layer in model])
    assert [note.split(": ")[:3] for note in recording.notes] == [["0, 1, 2 and 2 more", "not seen", "OwnAttention"]]


def test_a_softmax_elsewhere_is_no_attention() -> None:
    class Router(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.gate(x).softmax(-1)

    model, x = Router(), torch.randn(2, 3, 4)
    recording = observe_unchanged(model, lambda: model(x))
    assert recording.notes == ["nothing was seen: no attention was computed in this thread outside of compiled graphs"]
