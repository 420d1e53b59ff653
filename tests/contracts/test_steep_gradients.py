"""In half precision, gradients that no fused kernel computes are those of float32, rounded once.

Rounding after every step of a backward pass costs digits that steep weights multiply: with cosine and Entmax(20) the
gradient of one score may be beyond float16 while that of the keys is not.
"""

import pytest
import torch

from regard import Entmax, attend
from regard.algebra import catalog
from regard.algebra.parts import Parts
from regard.algebra.shapes import Tensor
from regard.compute.catalog_cases import PLAIN
from regard.compute.verification import SEED, SMALL, build_parts, cast_parts, draw_inputs

HALVES = [torch.float16, torch.bfloat16]
OTHERS = {"entmax-4": Entmax(4.0), "entmax-20": Entmax(20.0), "entmax-1.01": Entmax(1.01)}
# A hard walk decides at one half, and a total of scores of both signs may be next to nothing.
NORMALIZERS = [name for name in catalog.NORMALIZERS if name not in ("hard-monotonic", "row-total")] + [*OTHERS]
SIZES = SMALL._replace(query=4, key=4)


def build(score: str, normalizer: str) -> Parts:
    """Return parts with tensors that want a gradient, in float64."""
    own = OTHERS.get(normalizer)
    case = PLAIN._replace(score=score, normalizer="softmax" if own else normalizer)
    parts = build_parts(case, SIZES)
    return parts._replace(normalizer=own) if own else parts


def differentiate(parts: Parts, tensors: list[Tensor], backend: str, dropout: float) -> tuple[str, list[Tensor | None]]:
    """Return the name of the backend, and the output with all gradients of a fixed mixture of it."""
    torch.default_generator.manual_seed(SEED)
    result = attend(*tensors, **parts._asdict(), backend=backend, dropout=dropout)
    mixture = torch.randn(result.output.shape, generator=torch.Generator().manual_seed(3)).to(torch.bfloat16)
    wanted = [tensor for tensor in (*tensors, *parts.tensors()) if tensor.requires_grad]
    slopes = torch.autograd.grad(result.output, wanted, mixture.to(result.output.dtype), allow_unused=True)
    return result.plan.backend, [result.output, *slopes]


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("score", catalog.SCORES)
def test_gradients_are_rounded_once(score: str, half: torch.dtype) -> None:
    for index, normalizer in enumerate(NORMALIZERS):
        dropout = 0.3 * (index % 2)
        parts = cast_parts(build(score, normalizer), half)
        tensors = [tensor.detach().to(half).requires_grad_() for tensor in draw_inputs(SIZES)]
        backend, found = differentiate(parts, tensors, "auto", dropout)
        if backend not in ("stream", "rows", "eager"):
            continue  # a fused kernel: test_precision.py and the fuzzer hold it to the contract
        wide = [tensor.detach().float().requires_grad_() for tensor in tensors]
        _, true = differentiate(cast_parts(parts, torch.float32), wide, backend, dropout)
        for own, exact in zip(found, true, strict=True):
            assert (own is None) == (exact is None)
            assert own is None or exact is None or torch.equal(own, exact.to(half)), normalizer
