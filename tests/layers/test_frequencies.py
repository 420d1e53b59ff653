"""Frequencies of rotary positions, scaled as papers and transformers scale them."""

import math
from collections.abc import Callable

import pytest
import torch

from regard.errors import InputError
from regard.layers import (
    Attention,
    DynamicNtkScaling,
    FrequencyScaling,
    LinearScaling,
    Llama3Scaling,
    NtkScaling,
    Rotary,
    YarnScaling,
)

DIM, HEADS, TRAINED, BASE = 34, 3, 64, 500.0
CASES: dict[str, tuple[FrequencyScaling, dict[str, object]]] = {
    "linear": (LinearScaling(4.0), {"rope_type": "linear", "factor": 4.0}),
    "dynamic": (DynamicNtkScaling(4.0, TRAINED), {"rope_type": "dynamic", "factor": 4.0}),
    "yarn": (YarnScaling(4.0, TRAINED), {"rope_type": "yarn", "factor": 4.0}),
    "yarn, steep": (
        YarnScaling(4.0, TRAINED, fast=3.0, slow=2.9),
        {"rope_type": "yarn", "factor": 4.0, "beta_fast": 3.0, "beta_slow": 2.9},
    ),
    "llama3": (
        Llama3Scaling(8.0, TRAINED, slow=1.0, fast=4.0),
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("length", [13, 200])
def test_llama_of_transformers_rotates_alike(name: str, length: int) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    scaling, parameters = CASES[name]
    extra = {} if name in ("linear", "dynamic") else {"original_max_position_embeddings": TRAINED}
    config = llama.LlamaConfig(
        hidden_size=DIM * HEADS,
        num_attention_heads=HEADS,
        max_position_embeddings=TRAINED,
        rope_parameters={"rope_theta": BASE} | parameters | extra,
    )
    x, positions = torch.randn(2, HEADS, length, DIM), torch.arange(length)[None]
    expected, _ = llama.apply_rotary_pos_emb(x, x, *llama.LlamaRotaryEmbedding(config)(x, positions))
    rotary = Rotary(DIM, base=BASE, layout="halves", scaling=scaling)
    torch.testing.assert_close(rotary(x), expected, rtol=0, atol=length * 1e-5)  # its angles are float32
    torch.testing.assert_close(rotary(x, positions=positions), rotary(x))
    given = parameters | {"original_max_position_embeddings": TRAINED} if name != "linear" else parameters
    assert Rotary(DIM, base=BASE, scaling=given).scaling == scaling, "transformers' own settings are read"


@pytest.mark.parametrize("name", CASES)
def test_products_depend_on_the_distance_alone(name: str) -> None:
    rotary, x = Rotary(DIM, base=BASE, scaling=CASES[name][0]), torch.randn(2, 1, DIM).double()
    far = rotary(x, positions=torch.tensor([[90], [100]])).squeeze(1)
    near = rotary(x.repeat(1, 2, 1), positions=torch.tensor([[30, 100], [40, 100]]))[:, 0]
    torch.testing.assert_close(far[0] @ far[1], near[0] @ near[1])


def test_a_larger_base_keeps_the_fastest_frequency_and_divides_the_slowest() -> None:
    plain, scaled = LinearScaling().scale(DIM, BASE, 0), NtkScaling(4.0).scale(DIM, BASE, 0)
    assert scaled[0] == plain[0]
    torch.testing.assert_close(scaled[-1], plain[-1] / 4)


def test_nothing_is_scaled_within_the_length_of_the_training() -> None:
    scaling, x = DynamicNtkScaling(4.0, TRAINED), torch.randn(TRAINED, DIM)
    torch.testing.assert_close(Rotary(DIM, scaling=scaling)(x), Rotary(DIM)(x))
    assert not torch.allclose(Rotary(DIM, scaling=scaling)(x, start=1), Rotary(DIM)(x, start=1))
    starts = Rotary(DIM, scaling=scaling)(x.expand(2, -1, -1), start=torch.tensor([0, 1]))
    torch.testing.assert_close(starts[1], Rotary(DIM, scaling=scaling)(x, start=1))


def test_queries_and_keys_are_sharper_by_yarns_temperature() -> None:
    x = torch.randn(1, DIM).double()
    turned = Rotary(DIM, scaling=YarnScaling(4.0, TRAINED))(x)
    torch.testing.assert_close(turned.norm() / x.norm(), torch.tensor(0.1 * math.log(4) + 1).double())


def test_a_layer_rotates_with_scaled_frequencies() -> None:
    layer = Attention(2 * DIM, heads=2, rotary=Rotary(DIM, scaling=Llama3Scaling(trained=4)))
    x = torch.randn(2, 7, 2 * DIM)
    memory = layer.remember(x)
    torch.testing.assert_close(layer(x, memory), layer(x))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: Rotary(8, scaling=0.0),
            "scaling: got 0.0, expected a number above 0; fix: use 4.0 for texts four times as long",
        ),
        (
            lambda: Rotary(2, scaling=NtkScaling(2.0))(torch.ones(1, 2)),
            "dim: got 2, expected at least 4, two frequencies, for a scaled base; "
            "fix: use LinearScaling, or more coordinates",
        ),
        (
            lambda: YarnScaling(4.0, 0),
            "trained: got 0, expected the length of the training's texts, 1 or more; fix: use 4096, say",
        ),
        (
            lambda: YarnScaling(4.0, 9, fast=1.0),
            "slow: got 1.0, expected above 0 and below fast=1.0; fix: use 1 and 32, as the paper does",
        ),
        (
            lambda: Llama3Scaling(slow=4.0),
            "slow: got 4.0, expected above 0 and below fast=4.0; fix: use 1 and 4, as Llama 3.1 does",
        ),
    ],
)
def test_what_cannot_be_scaled_is_told(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"rope_type": "yarn", "factor": 4.0},
            "scaling: got yarn without original_max_position_embeddings, expected factor, "
            "original_max_position_embeddings, beta_fast, beta_slow; fix: add it, or write YarnScaling(…)",
        ),
        (
            {"type": "linear", "factor": 4.0, "mscale": 1.0},
            "scaling: got mscale of linear, expected factor; fix: write LinearScaling(…) without it",
        ),
        (
            {"type": "longrope"},
            "scaling: got rope_type 'longrope', expected one of default, linear, dynamic, yarn, llama3; "
            "fix: write a FrequencyScaling",
        ),
    ],
)
def test_settings_of_transformers_that_cannot_be_read(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Rotary(DIM, scaling=settings)
    assert str(caught.value) == message
