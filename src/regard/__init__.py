"""regard: every attention mechanism under one operator, each proven equal to its definition.

Names are found when they are first used, so that `import regard` and the command line do not wait for torch.

>>> from regard import Causal, Gaussian, attend
>>> x = torch.arange(3.0)[:, None]
>>> attend(x, x, x, score=Gaussian(width=10.0), mask=Causal()).output.flatten()
tensor([0., 1., 2.])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.algebra.aggregates import (
        Aggregate,
        Argmax,
        Baseline,
        Gumbel,
        Sample,
        Soft,
        StraightThroughGumbel,
        reinforce,
    )
    from regard.algebra.biases import ALiBi, Bias, Dense, Prior, Relative
    from regard.algebra.masks import Causal, CenteredWindow, Documents, Full, Lengths, Mask, Prefix, Table, Window
    from regard.algebra.normalizers import (
        ChunkwiseMonotonic,
        Entmax,
        Entmax15,
        HardMonotonic,
        LocalGaussian,
        Monotonic,
        Normalizer,
        RowTotal,
        Sigmoid,
        Softmax,
        SoftmaxPlusOne,
        Sparsemax,
    )
    from regard.algebra.parts import CallFacts, Parts
    from regard.algebra.scores import (
        Additive,
        Bilinear,
        Capped,
        Concat,
        Cosine,
        Dot,
        DotForm,
        DotScore,
        FeatureDot,
        Gaussian,
        Laplacian,
        Location,
        ScaledDot,
        Score,
    )
    from regard.compute.attend import AttentionResult, attend
    from regard.compute.planning import Plan, make_plan
    from regard.compute.weights import Weights
    from regard.errors import InputError, KindError, PlanError, RegardError
    from regard.inspect.observe import observe
    from regard.inspect.recording import Recording

__version__ = "0.1.0"

_HOMES = {
    "algebra.aggregates": "Argmax Baseline Gumbel StraightThroughGumbel Aggregate Sample Soft reinforce",
    "algebra.biases": "ALiBi Bias Dense Prior Relative",
    "errors": "InputError KindError PlanError RegardError",
    "compute.planning": "Plan make_plan",
    "algebra.masks": "CenteredWindow Causal Documents Full Lengths Mask Prefix Table Window",
    "algebra.normalizers": "ChunkwiseMonotonic Entmax Entmax15 HardMonotonic LocalGaussian "
    "Monotonic Normalizer RowTotal Sigmoid Softmax SoftmaxPlusOne Sparsemax",
    "inspect.observe": "observe",
    "compute.attend": "AttentionResult attend",
    "algebra.parts": "CallFacts Parts",
    "inspect.recording": "Recording",
    "algebra.scores": "Additive Bilinear Capped Concat Cosine Dot DotForm DotScore FeatureDot Gaussian "
    "Laplacian Location ScaledDot Score",
    "compute.weights": "Weights",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    found: object = getattr(import_module(f"regard.{_HOME_OF[name]}"), name)
    globals()[name] = found  # the next time it is an attribute like any other
    return found


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]


__all__ = [
    "ALiBi",
    "Additive",
    "Aggregate",
    "Argmax",
    "AttentionResult",
    "Baseline",
    "Bias",
    "Bilinear",
    "CallFacts",
    "Capped",
    "Causal",
    "CenteredWindow",
    "ChunkwiseMonotonic",
    "Concat",
    "Cosine",
    "Dense",
    "Documents",
    "Dot",
    "DotForm",
    "DotScore",
    "Entmax",
    "Entmax15",
    "FeatureDot",
    "Full",
    "Gaussian",
    "Gumbel",
    "HardMonotonic",
    "InputError",
    "KindError",
    "Laplacian",
    "Lengths",
    "LocalGaussian",
    "Location",
    "Mask",
    "Monotonic",
    "Normalizer",
    "Parts",
    "Plan",
    "PlanError",
    "Prefix",
    "Prior",
    "Recording",
    "RegardError",
    "Relative",
    "RowTotal",
    "Sample",
    "ScaledDot",
    "Score",
    "Sigmoid",
    "Soft",
    "Softmax",
    "SoftmaxPlusOne",
    "Sparsemax",
    "StraightThroughGumbel",
    "Table",
    "Weights",
    "Window",
    "attend",
    "make_plan",
    "observe",
    "reinforce",
]
