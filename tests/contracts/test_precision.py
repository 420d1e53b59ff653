"""In low precision a fast path may err at most twice as much as the definition does, plus one rounding."""

import pytest
import torch

from regard.algebra import catalog
from regard.algebra.parts import Parts
from regard.algebra.shapes import Tensor
from regard.compute import catalog_cases, verification
from regard.compute.catalog_cases import CatalogCase
from regard.compute.verification import build_parts, find_supported_backends

SIZES = verification.SMALL._replace(query=17, key=17, value=13, queries=23, keys=37)
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# A hard walk decides at one half, and a total of scores of both signs may be next to nothing: rounding the scores
# changes those answers at will, in the definition as well. Float64 covers them; here totals get positive features.
NORMALIZERS = [name for name in catalog.NORMALIZERS if name not in ("hard-monotonic", "row-total")]
SOFT = [list(catalog.SCORES), list(catalog.BIASES), list(catalog.MASKS), NORMALIZERS, ["soft"]]
POSITIVE = [["features"], ["none"], list(catalog.MASKS), ["row-total"], ["soft"]]


# torch's fused CPU kernel takes exponentials with an error of 20 units in the last place ("exp_u20", float32 only):
# what it adds is no error of ours, and bare scaled_dot_product_attention has it too.
KERNEL = {("sdpa", torch.float32): 20, ("local", torch.float32): 20}


def exact(parts: Parts) -> Parts:
    """Return the same parts with the same, already rounded, numbers in float64."""
    for part in parts:
        if isinstance(part, torch.nn.Module):
            part.to(torch.float64)
            for name, tensor in [*vars(part).items()]:
                if isinstance(tensor, Tensor) and tensor.is_floating_point():
                    setattr(part, name, tensor.detach().double())
    return parts


def measure_worst(found: Tensor, true: Tensor) -> float:
    return float((found.double() - true).detach().abs().max())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "case", catalog_cases.choose_pairwise_cases(SOFT) + catalog_cases.choose_pairwise_cases(POSITIVE), ids=str
)
def test_low_precision_errs_no_more_than_the_definition(case: CatalogCase, dtype: torch.dtype) -> None:
    parts, tensors = build_parts(case, SIZES, dtype=dtype), verification.draw_inputs(SIZES, dtype=dtype)
    found = {
        backend: verification.run_backend(parts, tensors, backend).output.detach()
        for backend in ["eager", *find_supported_backends(parts, SIZES, dtype=dtype)]
    }
    wide = [tensor.detach().double() for tensor in tensors]
    true = verification.run_backend(exact(parts), wide, "eager").output.detach()
    rounding = torch.finfo(dtype).eps * float(true.abs().max())
    for backend, output in found.items():
        allowed = 2 * (measure_worst(found["eager"], true) + rounding) + KERNEL.get((backend, dtype), 0) * rounding
        assert output.dtype == dtype
        assert measure_worst(output, true) <= allowed, backend
