"""Keywords of other libraries, and arguments too many, are refused by a sentence that says what to write here."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard import layers
from regard.algebra import catalog
from regard.algebra.biases import Bias
from regard.algebra.foreign_keywords import PHRASES, SYNONYMS
from regard.errors import KindError
from regard.layers import Attention, DecoderBlock, EncoderBlock, FeedForward, Memory, PackedProjections, Rotary
from regard.layers.mechanism import choose_part

X = torch.randn(2, 5, 6)


def make_layer() -> Attention:
    return Attention(6, heads=2)


CALLS: list[tuple[Callable[..., Any], dict[str, Any], str, str]] = [
    (lambda **k: regard.attend(X, X, X, **k), {"attn_mask": None}, "attend", "mask=Mask.keep(…) if True allows"),
    (lambda **k: regard.attend(X, X, X, **k), {"is_causal": True}, "attend", 'mask="causal", or'),
    (lambda **k: regard.attend(X, X, X, **k), {"dropout_p": 0.1}, "attend", "dropout=0.1"),
    (lambda **k: regard.attend(X, X, X, **k), {"valid_lens": None}, "attend", "mask=Lengths(valid_lens)"),
    (lambda **k: regard.attend(X, X, X, **k), {"normaliser": "softmax"}, "attend", "normalizer='softmax'"),
    (regard.attend, {"queries": X, "keys": X, "values": X}, "attend", "query=…, key=…, value=…"),
    (Attention, {"embed_dim": 6, "num_heads": 2}, "Attention", "size=6, heads=2"),
    (Attention, {"d_model": 6, "batch_first": True}, "Attention", "size=6, nothing: the batch is always first"),
    (lambda **k: make_layer()(X, **k), {"key_padding_mask": None}, "Attention", "mask=Mask.drop_keys(…) if True hides"),
    (lambda **k: make_layer()(X, **k), {"attention_mask": None}, "Attention", "mask=Mask.keep(…)"),
    (lambda **k: make_layer()(X, X, X, **k), {"need_weights": True}, "Attention", "output, weights = layer.attend(…)"),
    (lambda **k: make_layer().attend(X, **k), {"context": X}, "Attention.attend", "source=…"),
    (EncoderBlock, {"d_model": 6, "nhead": 2, "dim_feedforward": 8}, "EncoderBlock", "size=6, heads=2, feed_forward="),
    (lambda **k: EncoderBlock(6, 2)(X, **k), {"src_key_padding_mask": None}, "EncoderBlock", "real=Mask.drop_keys(…)"),
    (lambda **k: DecoderBlock(6, 2)(X, X, **k), {"tgt_is_causal": True}, "DecoderBlock", "nothing: a decoder block"),
    (lambda **k: DecoderBlock(6, 2)(X, **k), {"memory": X}, "DecoderBlock", "state=…"),
    (Memory, {"keys": X, "values": X}, "Memory", "key=…, value=…"),
    (FeedForward, {"dim_feedforward": 8}, "FeedForward", "hidden="),
    (lambda **k: Rotary(6, **k), {"theta": 1e4}, "Rotary", "base=10000.0"),
    (regard.Additive, {"query_size": 3, "key_size": 5, "num_hiddens": 7}, "Additive", "query=3, key=5, hidden=7"),
    (regard.ScaledDot, {"scale": 2}, "ScaledDot", "scale * Dot()"),
    (regard.Softmax, {"dim": -1}, "Softmax", "nothing: rows are the last axis"),
    (regard.Gaussian, {"sigma": 1.0}, "Gaussian", "bandwidth=1.0"),
    (lambda **k: regard.masked_softmax(X, **k), {"valid_lens": [1, 2]}, "masked_softmax", "lengths=…"),
]


@pytest.mark.parametrize(("call", "keywords", "name", "fix"), CALLS)
def test_a_foreign_keyword_says_what_to_write(
    call: Callable[..., Any], keywords: dict[str, Any], name: str, fix: str
) -> None:
    with pytest.raises(KindError) as caught:
        call(**keywords)
    message = str(caught.value)
    assert message.startswith(f"{name}: got keyword")
    assert f"; fix: write {fix}" in message
    assert all(keyword in message for keyword in keywords)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_layer()(X, X, X, X), "Attention: got 4 arguments, expected at most 3 without a name (query, s"),
        (lambda: regard.attend(X, X, X, X), "attend: got 4 arguments, expected at most 3 without a name (query, k"),  # type: ignore[misc]
        (lambda: regard.Full(3), "Full: got 1 argument, expected no settings; fix: leave it out"),  # type: ignore[call-arg]
    ],
)  # fmt: skip
def test_one_argument_too_many_is_to_be_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(KindError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_what_is_wrong_inside_is_not_said_otherwise() -> None:
    class Broken(regard.Dot):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        regard.attend(X, X, X, score=Broken(), backend="eager")
    with pytest.raises(
        KindError, match=r"^attend: got no value, expected query, key, value, .* fix: write attend\(query"
    ):
        regard.attend(X, X)  # type: ignore[call-arg]


def test_signatures_stay_what_they_were() -> None:
    assert list(inspect.signature(regard.attend).parameters)[:4] == ["query", "key", "value", "score"]
    assert list(inspect.signature(Attention).parameters)[:2] == ["size", "heads"]
    assert list(inspect.signature(Attention.forward).parameters) == ["self", "query", "source", "content", "mask"]


def test_every_answer_names_a_parameter_that_exists() -> None:
    public = [getattr(regard, name) for name in regard.__all__] + [getattr(layers, name) for name in layers.__all__]
    methods = [m for part in public if isinstance(part, type) for m in (part, *vars(part).values()) if callable(m)]
    known = {""}
    for call in [*methods, *(part for part in public if inspect.isfunction(part))]:
        try:
            known |= set(inspect.signature(call).parameters)
        except (TypeError, ValueError):
            continue
    assert set(SYNONYMS) | {name for answers in PHRASES.values() for name in answers} <= known
    assert not {word for words in SYNONYMS.values() for word in words.split()} & set(catalog.FAMILIES)


def test_a_switch_for_biases_says_where_linear_maps_have_theirs() -> None:
    with pytest.raises(KindError, match=r"write Attention\(PackedProjections\(64, heads=8, bias=False\)\)"):
        choose_part("bias", False, Bias, None)
    assert Attention(PackedProjections(64, heads=8, bias=False))
