"""This library's own layers and decoders, and x-transformers' encoder."""

import warnings

import pytest
import torch
from torch import nn

from regard import ALiBi, Causal, Gaussian, Lengths, Monotonic, Softmax, Sparsemax, Window, attend
from regard.algebra.masks import Mask
from regard.layers import Attention, Mechanism
from tests.inspect.observe.checking import close, observe_unchanged
from tests.models.small_models import CONFIGS, draw_sources, draw_targets, encode_sources, make

B, L, S, E = 3, 5, 7, 12
MASKS: dict[str, Mask] = {
    "none": Mask.keep(torch.ones(1, 1, dtype=torch.bool)),
    "causal": Causal(),
    "lengths": Lengths(torch.tensor([7, 3, 0])),
    "window": Window(before=1, after=1),
}


@pytest.mark.parametrize("keep", ["weights", "tiles", "statistics"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("groups", [4, 2, 1])
def test_a_layer_with_heads_and_groups(groups: int, mask: str, keep: str) -> None:
    layer = Attention(E, heads=4, groups=groups, dropout=0.2)
    query, source = torch.randn(B, L, E), torch.randn(B, S, E)
    expected = layer.attend(query, layer.remember(source), mask=MASKS[mask]).weights.dense().detach()
    assert expected.shape == (B, 4, L, S)
    for item in range(B):
        recording = observe_unchanged(
            layer, lambda: layer(query, layer.remember(source), mask=MASKS[mask]), item=item, keep=keep, top=S
        )
        seen = recording["Attention"]
        close(seen.received_weight(), expected[item].sum(-2))
        close(seen.top(S).weights, expected[item].sort(-1, descending=True).values)
        if keep != "statistics":
            close(seen.dense(), expected[item])


MECHANISMS = {
    "gaussian": Mechanism(Gaussian(bandwidth=1.4)),
    "sparsemax": Mechanism(normalizer=Sparsemax()),
    "alibi": Mechanism(bias=ALiBi(4)),
    "warm": Mechanism(normalizer=Softmax(temperature=2.0)),
    "monotonic": Mechanism(normalizer=Monotonic()),
}


@pytest.mark.parametrize("limit", [2**28, 3000], ids=["whole", "statistics"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_any_mechanism(name: str, limit: int) -> None:
    layer = Attention(E, heads=4, mechanism=MECHANISMS[name])
    query, source = torch.randn(B, L, E), torch.randn(B, S, E)
    expected = layer.attend(query, layer.remember(source), mask=Causal()).weights.dense().detach()[1]
    recording = observe_unchanged(
        layer, lambda: layer(query, layer.remember(source), mask=Causal()), item=1, limit=limit
    )
    close(recording["Attention"].entropy(), torch.special.entr(expected).sum(-1))
    close(recording["Attention"].received_weight(), expected.sum(-2))


class Plain(nn.Module):
    """Calls the operator itself, with one lead axis or none."""

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return attend(query, key, key).output


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_the_operator_in_a_module(lead: tuple[int, ...]) -> None:
    query, key = torch.randn(*lead, L, E), torch.randn(*lead, S, E)
    model, table = Plain(), attend(query, key, key).weights.dense()
    expected = {0: table, 1: table[:1], 2: table[:1]}[len(lead)].reshape(-1, L, S)
    seen = observe_unchanged(model, lambda: model(query, key))["Plain"].dense()
    close(seen, expected if len(lead) != 2 else table[0])


@pytest.mark.parametrize("name", CONFIGS)
def test_a_decoder_is_seen_where_it_says_it_looked(name: str) -> None:
    """Teacher forcing gives weights (batch, target, source), the mean over the heads: the same that is observed."""
    model = make(name).eval()
    encoded = encode_sources(model)

    def teacher_force() -> list[torch.Tensor]:
        told = model.decoder.teacher_force(draw_targets(), encoded)
        return [told.vectors, *([] if told.weights is None else [told.weights.dense()])]

    with torch.no_grad():
        expected, recording = teacher_force(), observe_unchanged(model, teacher_force, item=1)
    if len(expected) == 1:
        assert not any("source" in site or "reader" in site for site in recording)
        return
    last = [seen for site, seen in recording.stack_calls().items() if seen.keys == draw_sources().shape[1]][-1]
    close(last.dense().mean(0).to(expected[1].dtype), expected[1][1])


def test_x_transformers_with_flash() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, at import
        from x_transformers import Encoder

    encoder = Encoder(dim=E, depth=2, heads=4, attn_dim_head=3, attn_flash=True).eval()
    slow = Encoder(dim=E, depth=2, heads=4, attn_dim_head=3, attn_flash=False).eval()
    slow.load_state_dict(encoder.state_dict())
    x, real = torch.randn(B, L, E), torch.arange(L) < torch.tensor([[5], [3], [4]])
    with torch.no_grad():
        recording = observe_unchanged(encoder, lambda: encoder(x, mask=real), item=1)
        _, hidden = slow(x, mask=real, return_hiddens=True)
    expected = [own.post_softmax_attn[1] for own in hidden.attn_intermediates]
    assert len(recording) == len(expected) == 2
    for seen, table in zip(recording.values(), expected, strict=True):
        close(seen.dense(), table)
