"""What is no float tensor is one sentence, in the operator and in every layer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard import Gaussian, InputError, KindError, attend
from regard.layers import Attention, AttentionFlow, CoAttention, GatedHeads, Hops, Memory, Pooling

pytestmark = pytest.mark.usefixtures("as_installed")

GOOD = torch.ones(2, 3, 8)
BAD: dict[str, Callable[[], Any]] = {
    "list": lambda: [[1.0]],
    "array": lambda: np.ones((2, 3, 8), dtype=np.float32),
    "integers": GOOD.long,
    "bools": GOOD.bool,
    "complex": lambda: GOOD * 1j,
    "nested": lambda: torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(2, 8)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(2, 8)], layout=torch.jagged),
    "sparse": GOOD.to_sparse,
    "mkldnn": GOOD.to_mkldnn,
}
layer = Attention(8, heads=2)
CALLS: dict[str, Callable[[Any], object]] = {
    "query": lambda bad: attend(bad, GOOD, GOOD),
    "key": lambda bad: attend(GOOD, bad, GOOD),
    "value": lambda bad: attend(GOOD, GOOD, bad, score=Gaussian()),
    "layer's query": lambda bad: layer(bad, layer.remember(GOOD)),
    "layer's source": lambda bad: layer.remember(bad),
    "layer's sequence": lambda bad: layer.attend_self(bad),
    "pooling": lambda bad: Pooling(8)(bad),
    "hops": lambda bad: Hops.linear(8)(bad, Memory(GOOD, GOOD)),
    "flow": lambda bad: AttentionFlow(8)(GOOD, bad),
    "co-attention": lambda bad: CoAttention(8, 8, hidden=3)(bad, GOOD),
    "gated": lambda bad: GatedHeads(8, 3, positions=9)(bad),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_float_tensor_is_refused(name: str, kind: str) -> None:
    bad = BAD[kind]()
    with pytest.raises(KindError, match=r"^\w+: got .*, expected a float tensor.*; fix: write "):
        CALLS[name](bad)


@pytest.mark.parametrize("bad", [[GOOD], (GOOD, GOOD)], ids=["list", "pair"])
def test_a_layer_wants_a_tensor_or_a_memory(bad: Any) -> None:
    sentence = (
        r"^source: got .*, expected a tensor, or a Memory of projected keys and values; "
        r"fix: write layer\(x\), layer\(x, source\) or layer\(x, layer\.remember\(source\)\)$"
    )
    with pytest.raises(KindError, match=sentence):
        layer(GOOD, bad)
    with pytest.raises(KindError, match=r"^memory: got a float32 tensor of shape \(2, 3, 8\), expected a Memory"):
        Hops.linear(8)(GOOD, GOOD)  # type: ignore[arg-type]


def test_a_wrong_width_is_one_sentence() -> None:
    wide = torch.ones(2, 3, 9)
    sentence = r"^(query|source|sequence): got width 9, expected the layer's own 8; fix: build the layer for that size"
    for one in (layer, Attention(8, heads=2, source=8)):
        for call in (lambda: one(wide, one.remember(GOOD)), lambda: one.remember(wide), lambda: one.attend_self(wide)):  # noqa: B023
            with pytest.raises(InputError, match=sentence):
                call()
