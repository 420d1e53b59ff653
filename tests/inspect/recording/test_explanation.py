"""What made a weight: by the formula that explains it, every weight comes out as it was observed."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard import Causal, Gaussian, InputError, Lengths, ScaledDot
from regard.algebra.catalog import NORMALIZERS, SCORES
from regard.inspect.observe import observe
from regard.inspect.recording import AttentionMap, DenseMap, Origin, Recording
from regard.layers import Attention

B, H, L, S, D = 2, 3, 5, 7, 11
FORMS = {"additive": "tanh", "concat": "tanh", "gaussian": "square", "laplacian": "absolute"}
WITHOUT_TERMS = {"capped"}  # a function of a sum, not a sum
SUMS = {"sum": ScaledDot() + 0.5 * Gaussian(bandwidth=2.0), "offset": ScaledDot() + 1.0}
NAMED = [name for name in SCORES if "+" not in name]


def record(layer: nn.Module, *arguments: torch.Tensor, item: int = 1, **named: object) -> AttentionMap:
    with torch.no_grad(), observe(layer, vectors=True, item=item) as recording:
        layer(*arguments, **named)
    return next(iter(recording.values()))


def check_every_weight(attention: AttentionMap) -> None:
    heads, queries, keys = attention.shape
    for head in range(heads):
        for query in range(queries):
            for key in range(keys):
                made = attention.explain(head, query, key)
                assert made.facts is not None
                assert made.facts.score == pytest.approx(made.facts.terms.sum().item(), rel=1e-4, abs=1e-5)
                assert made.facts.recompute_weight() == pytest.approx(made.weight, rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("name", [*NAMED, *SUMS])
def test_the_terms_of_every_score_give_its_weights(name: str) -> None:
    torch.manual_seed(0)
    layer = Attention(H * 4, heads=H, score=SUMS.get(name, name)).eval()
    attention = record(layer, torch.randn(B, L, H * 4), torch.randn(B, S, H * 4))
    if name in WITHOUT_TERMS:
        assert attention.explain(0, 0, 0).facts is None
        return
    assert attention.origin is not None
    assert attention.origin.form == FORMS.get(name.removeprefix("learned-"), "dot")
    check_every_weight(attention)


@pytest.mark.parametrize("name", [name for name in NORMALIZERS if name not in ("local-p", "chunkwise")])
def test_every_normalizer_says_what_it_divides_by(name: str) -> None:
    torch.manual_seed(0)
    score = "features" if name == "row-total" else "scaled-dot"  # whose scores are never negative
    layer = Attention(H * 4, heads=H, score=score, normalizer=name).eval()
    attention = record(layer, torch.randn(B, L, H * 4), torch.randn(B, S, H * 4))
    facts = attention.explain(2, 3, 1).facts
    assert facts is not None
    if facts.recompute_weight() is None:
        assert facts.origin.normalizer not in ("softmax", "softmax-plus-one", "entmax", "sigmoid", "row-total")
        return
    check_every_weight(attention)


@pytest.mark.parametrize("mask", [Causal(), Lengths(torch.tensor([2, 4]))])
@pytest.mark.parametrize("bias", [None, "alibi"])
def test_masks_and_biases_are_what_was_added(mask: object, bias: str | None) -> None:
    torch.manual_seed(0)
    layer = Attention(H * 4, heads=H, bias=bias).eval()
    attention = record(layer, torch.randn(B, L, H * 4), mask=mask)
    check_every_weight(attention)
    hidden = attention.explain(0, 0, L - 1).facts
    assert hidden is not None
    assert hidden.is_hidden
    assert hidden.recompute_weight() == 0


def test_values_count_by_weight_times_length() -> None:
    class Model(nn.Module):
        def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    torch.manual_seed(0)
    query, key, value = (torch.randn(B, H, L, D) for _ in range(3))
    attention = record(Model(), query, key, value)
    check_every_weight(attention)
    made = attention.explain(1, 3, 2)
    weights = (query[1, 1] @ key[1, 1].T / D**0.5).masked_fill(torch.ones(L, L).triu(1).bool(), -torch.inf).softmax(-1)
    lengths = value[1, 1].norm(dim=-1)
    assert made.facts is not None
    assert made.facts.norm == pytest.approx(lengths[2].item(), rel=1e-5)
    share = weights[3, 2] * lengths[2] / (weights[3] * lengths).sum()
    assert made.facts.norm_share == pytest.approx(share.item(), rel=1e-4)
    assert made.facts.terms.tolist() == pytest.approx((query[1, 1, 3] * key[1, 1, 2] / D**0.5).tolist(), rel=1e-5)


def test_what_was_not_kept_is_not_known() -> None:
    weights = torch.tensor([[[0.1, 0.6, 0.3]]])
    made = DenseMap(weights).explain(0, 0, 2)
    assert (made.rank, made.keys, made.facts) == (2, 3, None)
    assert made.share == pytest.approx(0.3)
    with pytest.raises(InputError, match=r"columns: got slice\(3, 4, None\)"):
        DenseMap(weights).explain(0, 0, 3)


def test_long_attention_that_is_kept_as_factors_explains_itself() -> None:
    torch.manual_seed(0)
    layer = Attention(H * 4, heads=H).eval()
    with torch.no_grad(), observe(layer, keep="tiles") as recording:
        layer(torch.randn(1, L, H * 4), mask=Causal())
    check_every_weight(recording["Attention"])


@pytest.mark.parametrize("score", ["scaled-dot", "additive"])
def test_a_file_keeps_what_made_the_weights(tmp_path: Path, score: str) -> None:
    torch.manual_seed(0)
    layer = Attention(H * 4, heads=H, score=score, bias="alibi", normalizer="entmax").eval()
    with torch.no_grad(), observe(layer, vectors=True) as recording:
        layer(torch.randn(1, L, H * 4), mask=Causal())
    recording.save(tmp_path / "seen.safetensors")
    loaded = Recording.load(tmp_path / "seen.safetensors")["Attention"]
    check_every_weight(loaded)
    assert loaded.explain(1, 4, 2).to_json() == recording["Attention"].explain(1, 4, 2).to_json()


def test_what_does_not_fit_is_left_out() -> None:
    layer = Attention(H * 4, heads=H).eval()
    x = torch.randn(1, L, H * 4)
    with torch.no_grad(), observe(layer, vectors=True, limit=H * L * L * 4) as recording:
        layer(x)
    assert recording["Attention"].origin is None
    assert recording.notes == []


def test_vectors_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="query and key: got"):
        Origin(torch.ones(3, 3, 4), torch.ones(2, 3, 4))
    with pytest.raises(InputError, match="bias: got"):
        Origin(torch.ones(2, 3, 4), torch.ones(2, 5, 4), bias=torch.zeros(2, 3, 4))
    with pytest.raises(InputError, match="origin: got"):
        DenseMap(torch.ones(2, 3, 6), Origin(torch.ones(2, 3, 4), torch.ones(2, 5, 4)))
