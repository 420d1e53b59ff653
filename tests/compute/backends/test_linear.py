"""Linear attention is taken for masks that running sums can follow, and refuses others."""

import pytest
import torch

from regard import Causal, Lengths, Mask, Window, attend
from regard.algebra.masks import Full
from regard.algebra.normalizers import RowTotal
from regard.algebra.scores import FeatureDot
from regard.errors import PlanError

L, D, E = 7, 5, 3
LENGTHS = Lengths(torch.tensor([3, 7]))
FOLLOWED: dict[str, Mask] = {"full": Full(), "causal": Causal(), "lengths": LENGTHS, "both": Causal() & LENGTHS}


def draw() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return queries, keys and values of two sequences."""
    return (*(torch.randn(2, L, D, dtype=torch.float64) for _ in range(2)), torch.randn(2, L, E, dtype=torch.float64))


@pytest.mark.parametrize("name", FOLLOWED)
def test_running_sums_are_the_definition(name: str) -> None:
    tensors, parts = draw(), {"score": FeatureDot(), "normalizer": RowTotal(), "mask": FOLLOWED[name]}
    found = attend(*tensors, **parts)
    assert found.plan.backend == "linear"
    torch.testing.assert_close(found.output, attend(*tensors, **parts, backend="eager").output)


@pytest.mark.parametrize("mask", [Window(1, 1), Causal() & Window(1, 1), ~Causal()], ids=["window", "both", "not"])
def test_a_mask_of_another_form_is_refused(mask: Mask) -> None:
    parts = {"score": FeatureDot(), "normalizer": RowTotal(), "mask": mask}
    assert attend(*draw(), **parts).plan.backend != "linear"
    with pytest.raises(PlanError, match="the mask is neither causal nor the same for all queries"):
        attend(*draw(), **parts, backend="linear")
