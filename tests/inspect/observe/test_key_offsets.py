"""Keys from the caches of transformers: whatever a cache drops, stacked calls are the attention over all positions."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regard import Recording, observe
from regard.inspect.recording import DenseMap
from tests.inspect.observe.checking import close, observe_unchanged
from tests.inspect.observe.test_transformers import LLAMA, build_llama, build_marian, compute_eager_weights

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers
    from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, Fp8QuantizedLayer, StaticCache

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' own, which differ from release to release
WINDOW, LENGTH = 4, 11
GEMMA = {**LLAMA, "head_dim": 6, "sliding_window": WINDOW, "query_pre_attn_scalar": 6}
TOKENS = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]])


def build_mistral() -> Any:
    return transformers.MistralForCausalLM(transformers.MistralConfig(**LLAMA, sliding_window=WINDOW))


def build_gemma2() -> Any:
    return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**GEMMA))


def build_gemma3() -> Any:
    kinds = ["sliding_attention", "full_attention"]
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**GEMMA, layer_types=kinds))


def build_llama4() -> Any:
    sizes = {"num_local_experts": 2, "intermediate_size_mlp": 19, "head_dim": 6, "attention_chunk_size": WINDOW}
    kinds = ["chunked_attention", "full_attention"]
    config = transformers.Llama4TextConfig(**{**LLAMA, "num_hidden_layers": 2}, **sizes, layer_types=kinds)
    return transformers.Llama4ForCausalLM(config)


def build_quantized_cache(config: Any) -> Cache:
    return Cache(layers=[Fp8QuantizedLayer() for _ in range(config.num_hidden_layers)])


MODELS = {
    "llama": build_llama,
    "mistral": build_mistral,
    "gemma2": build_gemma2,
    "gemma3": build_gemma3,
    "llama4": build_llama4,
}
CACHES: dict[str, Callable[[Any], Cache]] = {
    "dynamic": lambda config: DynamicCache(config=config),
    "static": lambda config: StaticCache(config=config, max_cache_len=16),
    "quantized": build_quantized_cache,
}
STEPS = {"one by one": [1] * LENGTH, "prefill": [7, 1, 1, 1, 1], "chunks": [3, 3, 3, 2], "long chunks": [2, 8, 1]}


def in_steps(model: Any, cache: Cache, steps: list[int]) -> Recording:
    """Return the recording of the whole sentence, read in steps of so many tokens."""
    with torch.no_grad(), observe(model) as recording:
        for part in TOKENS.split(steps, dim=1):
            model(input_ids=part, past_key_values=cache)
    return recording


CASES = [("mistral", cache, steps, "sdpa") for cache in ("dynamic", "static") for steps in STEPS]
CASES += [(name, cache, "prefill", "eager") for name in ("mistral", "gemma2") for cache in ("dynamic", "static")]
CASES += [(name, cache, "long chunks", "sdpa") for name in ("gemma3", "llama4") for cache in ("dynamic", "static")]
CASES += [("llama", cache, "chunks", "sdpa") for cache in CACHES]


@pytest.mark.parametrize(("name", "cache", "steps", "attention"), CASES)
def test_stacked_steps_are_the_attention_over_all_positions(name: str, cache: str, steps: str, attention: str) -> None:
    model = MODELS[name]().eval()
    model.set_attn_implementation(attention)
    expected = compute_eager_weights(model, {"input_ids": TOKENS, "use_cache": False})
    recording = in_steps(model, CACHES[cache](model.config), STEPS[steps]).stack_calls()
    assert len(recording) == len(expected) == 2
    assert recording.notes == []
    for seen, table in zip(recording.values(), expected, strict=True):
        weights = seen.dense()
        assert not weights[..., LENGTH:].any()  # a static cache has room for more
        tolerance = 0.2 if cache == "quantized" else 1e-5  # eight bits a number
        torch.testing.assert_close(weights[..., :LENGTH], table[0], rtol=0, atol=tolerance)


@pytest.mark.parametrize("keep", ["weights", "tiles", "statistics"])
def test_generation_with_a_sliding_window_says_where_its_keys_are(keep: str) -> None:
    model = build_mistral().eval()

    def generate() -> Tensor:
        made: Tensor = model.generate(TOKENS[:, :5], max_new_tokens=6, do_sample=False, eos_token_id=None)
        return made

    recording = observe_unchanged(model, generate, keep=keep, top=2)
    name = "model.layers.0.self_attn"
    assert [recording.offsets.get(n, 0) for n in recording.find_sites(name)] == [0, 2, 3, 4, 5, 6]
    stacked = recording.stack_calls()[name]
    expected = compute_eager_weights(model, {"input_ids": generate()[:, :-1], "use_cache": False})[0][0]
    close(stacked.received_weight(), expected.sum(-2))
    close(stacked.top(2).weights, expected.topk(2).values)
    close(expected.gather(-1, stacked.top(2).keys), expected.topk(2).values)


def test_an_encoder_and_its_decoder_with_a_cache_of_both() -> None:
    model = build_marian().eval()
    target = torch.tensor([[3, 4, 5, 6, 7]])
    expected = compute_eager_weights(model, {"input_ids": TOKENS, "decoder_input_ids": target, "use_cache": False})
    cache = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
    with torch.no_grad(), observe(model, sites="*decoder*") as recording:
        for part in target.split([2, 1, 1, 1], dim=1):
            model(input_ids=TOKENS, decoder_input_ids=part, past_key_values=cache)
    for seen, table in zip(recording.stack_calls().values(), expected[2:], strict=True):
        torch.testing.assert_close(seen.dense(), table[0], rtol=0, atol=1e-5)


class RollingAttention(nn.Module):
    """A window over its own keys, which nobody is told of."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return scaled_dot_product_attention(query, key, key)


def test_calls_whose_keys_are_not_known_stay_apart_and_a_note_says_so() -> None:
    model, key = RollingAttention(), torch.randn(1, 1, 7, 3)
    with observe(model) as recording:
        for step in range(3):
            model(key[:, :, step : step + 1], key[:, :, step : step + 4])
    assert recording.offsets == {"RollingAttention#2": None, "RollingAttention#3": None}
    stacked = recording.stack_calls()
    assert list(stacked) == ["RollingAttention", "RollingAttention#2", "RollingAttention#3"]
    assert stacked.notes == ["RollingAttention: its 3 calls stay apart: the positions of their keys are not known"]
    with observe(model) as recording:
        for step in range(3):
            model(key[:, :, step : step + 1], key[:, :, : step + 1])
    assert recording.stack_calls()["RollingAttention"].shape == (1, 3, 3)


class CachedAttention(nn.Module):
    """Attends to what a cache gives back."""

    def forward(self, x: Tensor, cache: Cache) -> Tensor:
        key, value = cache.update(x, x, 0)
        return scaled_dot_product_attention(x, key, value)


class SilentCache(DynamicCache):
    """A cache of somebody's own."""

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        raise NotImplementedError


class MistakenCache(DynamicCache):
    """One that tells other sizes than it has."""

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return query_length, 5


@pytest.mark.parametrize("kind", [SilentCache, MistakenCache])
def test_a_cache_that_does_not_tell_its_positions_is_not_known(kind: type[Cache]) -> None:
    model, cache = CachedAttention(), kind()
    observe_unchanged(model, lambda: [model(torch.ones(1, 1, 2, 3), kind())])
    with observe(model) as recording:
        model(torch.ones(1, 1, 2, 3), cache)
        model(torch.ones(1, 1, 1, 3), cache)
    assert recording.offsets["CachedAttention#2"] is None


def test_offsets_go_with_their_attentions(tmp_path: Any) -> None:
    recording = Recording()
    recording.add("a", DenseMap(torch.ones(1, 1, 2)), 3)
    recording.add("a", DenseMap(torch.ones(1, 1, 2)), None)
    recording.add("b", DenseMap(torch.ones(1, 1, 2)))
    expected = {"a": 3, "a#2": None}
    assert recording.offsets == expected
    assert recording.select("a").offsets == expected
    assert Recording().merge(recording).offsets == expected
    assert recording.compare(recording).offsets == expected
    recording.save(tmp_path / "recording")
    assert Recording.load(tmp_path / "recording").offsets == expected
    recording.label(sites="a")
    assert recording.labels["a"].keys == ("3", "4")


def test_a_difference_of_other_keys_is_noted() -> None:
    one, other = Recording(), Recording()
    one.add("a", DenseMap(torch.ones(1, 1, 2)), 3)
    other.add("a", DenseMap(torch.ones(1, 1, 2)), 4)
    difference = one.compare(other)
    assert difference.offsets == {"a": None}
    assert difference.notes == ["a: the keys of the two recordings have other positions"]
