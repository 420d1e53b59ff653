"""Models of transformers, built small from their configs, as they are by default: against their own eager attention."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import InputError, observe
from regard.inspect.observe.hugging_face import _build_score, register
from tests.inspect.observe.checking import close, observe_unchanged

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' own, which differ from release to release

SMALL = {"vocab_size": 37, "attention_dropout": 0.1}
LLAMA = {"hidden_size": 24, "intermediate_size": 19, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA |= {"num_key_value_heads": 2, "max_position_embeddings": 32, "pad_token_id": 0, **SMALL}
PAIR = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 32, "pad_token_id": 0}
PAIR |= {
    f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("attention_heads", 4), ("ffn_dim", 19))
}


def build_bert() -> Any:
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 19}
    return transformers.BertModel(transformers.BertConfig(vocab_size=37, max_position_embeddings=32, **sizes))


def build_gpt2() -> Any:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=37, n_positions=32, n_embd=24, n_layer=2, n_head=4, pad_token_id=0)
    )


def build_t5() -> Any:
    config = transformers.T5Config(vocab_size=37, d_model=24, d_kv=6, d_ff=19, num_layers=2, num_heads=4)
    config.decoder_start_token_id = 0
    return transformers.T5ForConditionalGeneration(config)


def build_marian() -> Any:
    return transformers.MarianMTModel(
        transformers.MarianConfig(**SMALL, **PAIR, decoder_start_token_id=0, eos_token_id=1, forced_eos_token_id=None)
    )


def build_llama() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def build_vit() -> Any:
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 19}
    return transformers.ViTModel(transformers.ViTConfig(image_size=8, patch_size=4, num_channels=3, **sizes))


TOKENS = torch.tensor([[5, 6, 7, 8, 9], [11, 12, 13, 0, 0]])
REAL = (TOKENS != 0).long()
TARGET = torch.tensor([[3, 4, 5], [6, 7, 8]])
TEXT = {"input_ids": TOKENS, "attention_mask": REAL}
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "bert": (build_bert, TEXT),
    "gpt2": (build_gpt2, TEXT),
    "gpt2 unpadded": (build_gpt2, {"input_ids": TOKENS}),
    "t5": (build_t5, {**TEXT, "decoder_input_ids": TARGET}),
    "marian": (build_marian, {**TEXT, "decoder_input_ids": TARGET}),
    "llama": (build_llama, TEXT),
    "llama unpadded": (build_llama, {"input_ids": TOKENS}),
    "vit": (build_vit, {"pixel_values": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))}),
}
NAMES = {
    "bert": ["encoder.layer.0.attention.self", "encoder.layer.1.attention.self"],
    "gpt2": ["transformer.h.0.attn", "transformer.h.1.attn"],
    "llama": ["model.layers.0.self_attn", "model.layers.1.self_attn"],
}


def compute_eager_weights(model: Any, inputs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the weights of the model's own eager attention, in the order in which they are computed."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    model.set_attn_implementation(before)
    if "encoder_attentions" in output:
        pairs = zip(output.decoder_attentions, output.cross_attentions, strict=True)
        return [*output.encoder_attentions, *(table for pair in pairs for table in pair)]
    return list(output.attentions)


@pytest.mark.parametrize("case", CASES)
def test_a_model_in_its_default_attention(case: str) -> None:
    build, inputs = CASES[case]
    model = build().eval()
    assert model.config._attn_implementation == "sdpa"
    expected = compute_eager_weights(model, inputs)
    for item in range(2):
        with torch.no_grad():
            recording = observe_unchanged(model, lambda: model(**inputs), item=item)
        assert list(recording) == NAMES.get(case.split()[0], list(recording))
        assert len(recording) == len(expected)
        for seen, table in zip(recording.values(), expected, strict=True):
            real = seen.dense().sum(-1) > 0.5  # the fused kernel gives zeros where a padded query sees nothing
            close(seen.dense()[real], table[item][real])
            assert real[:, : REAL[item].sum()].all()


def test_a_model_in_training_is_seen_without_dropout_and_trains_the_same() -> None:
    model = build_marian().train()
    inputs = {**TEXT, "labels": TARGET, "decoder_input_ids": TARGET}

    def gradients() -> Any:
        return torch.autograd.grad(
            model(**inputs).loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True
        )

    recording = observe_unchanged(model, lambda: [g for g in gradients() if g is not None])
    first = recording["model.encoder.layers.0.self_attn"].dense()
    torch.testing.assert_close(first.sum(-1), torch.ones(4, 5))


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_model_in_eager_attention(training: bool) -> None:
    model = build_llama()
    model.set_attn_implementation("eager")
    expected = compute_eager_weights(model.eval(), TEXT)
    recording = observe_unchanged(model.train(training), lambda: model(**TEXT), item=1)
    close(recording["model.layers.0.self_attn"].dense(), expected[0][1])


def test_generation_step_by_step_is_one_matrix() -> None:
    model = build_llama().eval()
    start = TOKENS[:1]

    def generate() -> torch.Tensor:
        made: torch.Tensor = model.generate(start, max_new_tokens=4, do_sample=False, eos_token_id=None)
        return made

    recording = observe_unchanged(model, generate)
    said = generate()
    name = "model.layers.1.self_attn"
    assert [recording[n].shape for n in recording.find_sites(name)] == [(4, 5, 5), (4, 1, 6), (4, 1, 7), (4, 1, 8)]
    whole = recording.stack_calls()
    assert list(whole) == ["model.layers.0.self_attn", name]
    close(whole[name].dense(), compute_eager_weights(model, {"input_ids": said[:, :-1]})[1][0])
    short = observe_unchanged(model, generate, keep="statistics", top=2).stack_calls()[name]
    close(short.entropy(), whole[name].entropy())
    close(short.received_weight(), whole[name].received_weight())
    assert torch.equal(short.top(1).keys, whole[name].top(1).keys)


@pytest.mark.parametrize("case", CASES)
def test_the_registered_implementation(case: str) -> None:
    register()
    build, inputs = CASES[case]
    model = build().eval()
    with torch.no_grad():
        expected, tables = model(**inputs)[0], compute_eager_weights(model, inputs)
        model.set_attn_implementation("regard")
        with observe(model, item=1) as recording:
            output = model(**inputs)[0]
    real = slice(None) if output.shape[1] != 5 else REAL[1].bool()
    torch.testing.assert_close(output[1, real], expected[1, real], atol=2e-6, rtol=1e-5)
    assert len(recording) == len(tables)
    for seen, table in zip(recording.values(), tables, strict=True):
        rows = seen.dense().sum(-1) > 0.5
        close(seen.dense()[rows], table[1][rows])


def test_one_layer_alone_and_generation_by_the_registered_implementation() -> None:
    register()
    model = build_llama().eval()
    expected = model.generate(TOKENS[:1], max_new_tokens=4, do_sample=False, eos_token_id=None)
    config = transformers.LlamaConfig(**LLAMA)
    config._attn_implementation = "regard"
    model.model.layers[1].self_attn.config = config
    with observe(model) as recording:
        made = model.generate(TOKENS[:1], max_new_tokens=4, do_sample=False, eos_token_id=None)
    assert torch.equal(made, expected)
    close(
        recording.stack_calls()["model.layers.1.self_attn"].dense(),
        compute_eager_weights(build_llama_like(model), {"input_ids": made[:, :-1]})[1][0],
    )


def build_llama_like(model: Any) -> Any:
    twin = build_llama().eval()
    twin.load_state_dict(model.state_dict())
    return twin


def build_mistral() -> Any:
    return transformers.MistralForCausalLM(transformers.MistralConfig(**LLAMA, sliding_window=3))


def table(inputs: dict[str, Any], *, causal: bool) -> torch.Tensor:
    """Return the padding mask of `inputs` with four axes: 0 if a key may be seen, else −inf or nearly so."""
    allowed = inputs["attention_mask"][:, None, None, :].bool().expand(-1, 1, 5, -1)
    allowed = allowed.tril() if causal else allowed
    return torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)


ASKED = {**CASES, "mistral": (build_mistral, TEXT), "mistral unpadded": (build_mistral, {"input_ids": TOKENS})}
ASKED |= {
    f"{name} 4-D": (build, {**TEXT, "attention_mask": table(TEXT, causal=name != "bert")})
    for name, build in (("bert", build_bert), ("gpt2", build_gpt2), ("llama", build_llama))
}


@pytest.mark.parametrize("case", ASKED)
def test_the_registered_implementation_gives_the_weights_that_are_asked_for(case: str) -> None:
    register()
    build, inputs = ASKED[case]
    model = build().eval()
    expected = compute_eager_weights(model, inputs)
    model.set_attn_implementation("regard")
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
        assert not model(**inputs).get("attentions")
    given = list(output.get("encoder_attentions") or output.attentions)
    if "encoder_attentions" in output:
        pairs = zip(output.decoder_attentions, output.cross_attentions, strict=True)
        given += [one for pair in pairs for one in pair]
    assert len(given) == len(expected)
    for one, other in zip(given, expected, strict=True):
        real = one.sum(-1) > 0.5  # a padded query that sees nothing has no weights
        close(one[real], other[real])
        assert real[0].all()


@pytest.mark.parametrize("build", [build_gpt2, build_llama, build_mistral])
def test_the_registered_implementation_gives_the_weights_of_each_step_of_a_cache(build: Callable[[], Any]) -> None:
    register()
    model = build().eval()
    steps = {}
    for name in ("eager", "regard"):
        model.set_attn_implementation(name)
        with torch.no_grad():
            first = model(TOKENS[:1, :4], use_cache=True, output_attentions=True)
            second = model(TOKENS[:1, 4:], past_key_values=first.past_key_values, output_attentions=True)
        steps[name] = [*first.attentions, *second.attentions]
    assert len(steps["regard"]) == 4
    for one, other in zip(*steps.values(), strict=True):
        close(one, other)


def test_the_registered_implementation_gives_weights_when_asked_and_refuses_sinks() -> None:
    register()
    model = build_llama().eval()
    expected = compute_eager_weights(model, TEXT)
    model.set_attn_implementation("regard")
    with torch.no_grad():
        given = model(**TEXT, output_attentions=True).attentions
    for one, other in zip(given, expected, strict=True):
        close(one[0], other[0])
    from regard.inspect.observe.hugging_face import regard_attention_forward

    q = torch.randn(1, 2, 3, 4)
    with pytest.raises(InputError, match=r"^s_aux: got a Tensor, expected none; fix: use attn_implementation='sdpa'$"):
        regard_attention_forward(torch.nn.Identity(), q, q, q, None, s_aux=q)
    more = torch.randn(1, 2, 5, 4)
    message = r"^keys: got 5, expected 3, as many as queries, under a causal flag; fix: pass an attention_mask$"
    with pytest.raises(InputError, match=message):
        regard_attention_forward(torch.nn.Identity(), q, more, more, None, is_causal=True)
    alone = regard_attention_forward(torch.nn.Identity(), q[:, :, -1:], more, more, None, is_causal=True)[0]
    close(alone, (q[:, :, -1:] @ more.mT / 2).softmax(-1).matmul(more).transpose(1, 2))


@pytest.mark.parametrize("scaling", [None, 1.0, 2.0, 0.25])
def test_a_scale_of_its_own_is_in_the_scores(scaling: float | None) -> None:
    """In units of 1 / √width: what is not the usual scale must not be taken for it."""
    query, key = torch.randn(3, 5, 4), torch.randn(3, 7, 4)
    factor = 4**-0.5 * (1.0 if scaling is None else scaling)
    found = _build_score(query, None if scaling is None else factor, None)(query, key)
    torch.testing.assert_close(found, query @ key.transpose(-1, -2) * factor)
