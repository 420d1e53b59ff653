"""What is told in blocks is what all weights tell, also where later queries see more keys."""

import pytest
import torch

from regard.inspect.observe import blocks
from regard.inspect.observe.calls import SoftmaxCall, masked_softmax
from regard.inspect.recording import Sketch

K = 3


def look(queries: int, keys: int, reach: int | None, *, biased: bool) -> SoftmaxCall:
    generator = torch.Generator().manual_seed(1)
    query, key = (torch.randn(4, length, 8, generator=generator) for length in (queries, keys))
    bias = torch.randn(1, queries, keys, generator=generator) if biased else None
    return SoftmaxCall(query, key[:2], bias, reach)


def compute_by_definition(seen: SoftmaxCall) -> torch.Tensor:
    """Return the weights by the definition, in float64."""
    query, key = seen.query.double(), seen.key.double().repeat_interleave(2, 0)
    scores = query @ key.mT + (0 if seen.bias is None else seen.bias.double())
    if seen.reach is not None:
        scores = scores.masked_fill(torch.ones(*scores.shape[1:], dtype=torch.bool).triu(seen.reach + 1), -torch.inf)
    return masked_softmax(scores)


def check_same(sketch: Sketch, weights: torch.Tensor) -> None:
    for own, whole in (
        (sketch.entropies, torch.special.entr(weights).sum(-1)),
        (sketch.mass, weights.sum(-2)),
        (sketch.largest, weights.topk(K).values),
        (sketch.largest, weights.gather(-1, sketch.indices.long())),
    ):
        assert torch.allclose(own.double(), whole, atol=1e-5)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("queries", "keys", "reach"), [(90, 90, 0), (90, 70, -20), (40, 90, 50), (90, 90, None)])
def test_blocks_tell_what_the_whole_tells(
    queries: int, keys: int, reach: int | None, biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 2**11)
    monkeypatch.setattr(blocks, "CELLS", 16)
    monkeypatch.setattr(blocks, "LONG", 64)
    seen = look(queries, keys, reach, biased=biased)
    weights = compute_by_definition(seen)
    assert torch.allclose(seen.to_dense().tile(1).double(), weights[1], atol=1e-5)
    sketch = seen.to_sketch(K)
    check_same(sketch, weights)
    down, across = (-(-length // 16) for length in (queries, keys))
    assert sketch.overview is not None
    peak = torch.nn.functional.max_pool2d(weights, (down, across), ceil_mode=True)
    assert sketch.overview.peak.shape == peak.shape
    assert torch.allclose(sketch.overview.peak.double(), peak, atol=1e-5)
