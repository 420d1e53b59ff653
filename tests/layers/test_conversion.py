"""The same numbers as nn.MultiheadAttention, both ways."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.normalizers import Softmax, Sparsemax
from regard.algebra.scores import Dot
from regard.errors import InputError, KindError
from regard.layers import Attention, Mechanism, PackedProjections, Projections, Rotary

B, H, L, S, D, K, V = 2, 3, 5, 7, 11, 13, 17
SIZE = H * D
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False},
    {"kdim": K, "vdim": V},
    {"kdim": K, "vdim": V, "bias": False},
    {"kdim": K},
    {"batch_first": False},
]


def build_multihead(**options: Any) -> nn.MultiheadAttention:
    module = nn.MultiheadAttention(SIZE, H, **{"batch_first": True, **options}).double()
    for parameter in module.parameters():  # biases start at zero, which would hide a lost one
        nn.init.normal_(parameter, std=0.2)
    return module


def draw_inputs(module: nn.MultiheadAttention) -> list[Tensor]:
    shapes = [(B, L, SIZE), (B, S, module.kdim), (B, S, module.vdim)]
    return [torch.randn(*shape).double().requires_grad_() for shape in shapes]


def attend_by_torch(module: nn.MultiheadAttention, tensors: list[Tensor], **masks: Any) -> Tensor:
    given = tensors if module.batch_first else [tensor.transpose(0, 1) for tensor in tensors]
    output: Tensor = module(*given, need_weights=False, **masks)[0]
    return output if module.batch_first else output.transpose(0, 1)


def gradients(output: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(output.sin().sum(), tensors))


def own_gradients(layer: Attention) -> list[Tensor]:
    """Return the gradients of the parameters, in the order in which torch's module has them."""
    parts = layer.projections
    assert isinstance(parts, PackedProjections | Projections)
    ins = [parts.input] if isinstance(parts, PackedProjections) else [parts.query, parts.key, parts.value]
    weights = [linear.weight.grad for linear in ins]
    biases = [] if ins[0].bias is None else [torch.cat([linear.bias.grad for linear in ins])]
    return [*weights, *biases, *(parameter.grad for parameter in parts.output.parameters())]


@pytest.mark.parametrize("masked", ["full", "causal", "attn_mask", "key_padding_mask", "both"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_numbers_and_gradients_are_those_of_torch(options: dict[str, Any], masked: str) -> None:
    module = build_multihead(**options)
    layer = Attention.from_torch(module)
    tensors = draw_inputs(module)
    drop = torch.rand(L, S) < 0.3
    drop[:, 0] = False
    padded = torch.tensor([[False] * S, [False] * 4 + [True] * 3])
    upper = torch.ones(L, S).triu(S - L + 1).bool()
    masks: dict[str, tuple[dict[str, Any], Mask, Mask]] = {
        "full": ({}, Full(), Full()),
        "causal": ({"attn_mask": upper}, Causal(), Full()),
        "attn_mask": ({"attn_mask": drop}, Mask.drop(drop), Full()),
        "key_padding_mask": ({"key_padding_mask": padded}, Full(), Mask.drop(padded[:, None])),
        "both": ({"attn_mask": drop, "key_padding_mask": padded}, Mask.drop(drop), Mask.drop(padded[:, None])),
    }
    named, mask, real = masks[masked]
    expected = attend_by_torch(module, tensors, **named)
    query, source, content = tensors
    output = layer(query, layer.remember(source, content, mask=real), mask=mask)
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
    for own, other in zip(gradients(output, tensors), gradients(expected, tensors), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parameter_gradients_are_those_of_torch(options: dict[str, Any]) -> None:
    module = build_multihead(**options)
    layer = Attention.from_torch(module)
    tensors = draw_inputs(module)
    attend_by_torch(module, tensors).sin().sum().backward()
    layer(tensors[0], layer.remember(*tensors[1:])).sin().sum().backward()
    for own, parameter in zip(own_gradients(layer), module.parameters(), strict=True):
        torch.testing.assert_close(own, parameter.grad)


def test_self_attention_of_torch_is_within() -> None:
    module = build_multihead()
    layer = Attention.from_torch(module)
    x = torch.randn(B, L, SIZE).double().requires_grad_()
    expected = module(x, x, x, need_weights=False)[0]
    output = layer.attend_self(x)[0].output
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(gradients(output, [x]), gradients(expected, [x]))
    layer.attend_self(x)[0].output.sin().sum().backward()
    module(x, x, x, need_weights=False)[0].sin().sum().backward()
    for own, parameter in zip(own_gradients(layer), module.parameters(), strict=True):
        torch.testing.assert_close(own, parameter.grad)


def test_weights_are_those_of_torch() -> None:
    module = build_multihead()
    layer = Attention.from_torch(module)
    query, source, content = draw_inputs(module)
    _, weights = module(query, source, content, average_attn_weights=False)
    torch.testing.assert_close(layer.attend(query, layer.remember(source, content)).weights.dense(), weights)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_there_and_back(options: dict[str, Any]) -> None:
    module = build_multihead(**options, dropout=0.25).eval()
    back = Attention.from_torch(module).to_torch()
    assert (back.dropout, back.training, back.batch_first) == (0.25, False, True)
    assert list(back.state_dict()) == list(module.state_dict())
    for own, other in zip(back.state_dict().values(), module.state_dict().values(), strict=True):
        assert own.dtype == other.dtype
        assert torch.equal(own, other)


def test_a_layer_of_ours_goes_to_torch() -> None:
    parts = Projections(nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE, bias=False), nn.Linear(SIZE, SIZE), heads=H)
    parts.output = nn.Linear(SIZE, SIZE, bias=False)
    for layer in (Attention(SIZE, heads=H), Attention(SIZE, heads=H, source=K), Attention(parts)):
        module = layer.double().to_torch()
        query, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, module.kdim).double()
        expected = layer(query, layer.remember(source))
        torch.testing.assert_close(module(query, source, source, need_weights=False)[0], expected)


def test_the_copy_is_a_copy() -> None:
    module = build_multihead()
    layer = Attention.from_torch(module)
    with torch.no_grad():
        module.in_proj_weight.zero_()
    assert all(parameter.abs().sum() > 0 for parameter in layer.parameters())


MESSAGES = {
    "add_bias_kv: got True, expected False; fix: append that key and value with Memory.append": lambda: (
        Attention.from_torch(build_multihead(add_bias_kv=True))
    ),
    "add_zero_attn: got True, expected False; fix: append that key and value with Memory.append": lambda: (
        Attention.from_torch(build_multihead(add_zero_attn=True))
    ),
    "mechanism: got Dot, Softmax, Soft, expected scaled dot product and softmax, all that torch's module has; "
    "fix: keep it in regard": lambda: Attention(SIZE, mechanism=Mechanism(Dot())).to_torch(),
    "mechanism: got ScaledDot, Sparsemax, Soft, expected scaled dot product and softmax, all that torch's module has; "
    "fix: keep it in regard": lambda: Attention(SIZE, mechanism=Mechanism(normalizer=Sparsemax())).to_torch(),
    "mechanism: got ScaledDot, Softmax, Soft, Rotary, expected scaled dot product and softmax, all that torch's module "
    "has; fix: keep it in regard": lambda: Attention(6, rotary=Rotary(6)).to_torch(),
    "mechanism: got ScaledDot, Softmax at temperature 2.0, Soft, expected scaled dot product and softmax, all that "
    "torch's module has; fix: keep it in regard": lambda: Attention(
        6, mechanism=Mechanism(normalizer=Softmax(2.0))
    ).to_torch(),
    "groups: got 1, expected heads=3, all that torch has; fix: build the layer with as many groups as heads": lambda: (
        Attention(SIZE, heads=3, groups=1).to_torch()
    ),
    "projections: got widths 12, 12 and 15, expected size=33 for query, key and value; fix: build the layer without "
    "`widths`": lambda: Attention(Projections.linear(SIZE, heads=3, widths=(4, 5))).to_torch(),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_what_cannot_be_carried_over_is_refused_in_a_sentence(message: str) -> None:
    with pytest.raises(InputError) as caught:
        MESSAGES[message]()
    assert str(caught.value) == message


def test_no_projection_is_no_linear() -> None:
    with pytest.raises(KindError) as caught:
        Attention(Projections()).to_torch()
    expected = "projections.query: got a Identity, expected an nn.Linear, all that torch has; fix: keep it in regard"
    assert str(caught.value) == expected
