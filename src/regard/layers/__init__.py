"""Layers: modules that hold parameters and nothing else. State is passed in and out."""

from torch.nn import Module as _Module

from regard.algebra.foreign_keywords import explain_calls as _explain_calls
from regard.algebra.foreign_names import explain_attributes as _explain_attributes
from regard.algebra.foreign_names import missing_name_error as _missing_name_error
from regard.layers.attention import Attention
from regard.layers.bidirectional import AttentionFlow, CoAttention, Trilinear
from regard.layers.blocks import DecoderBlock, DecoderBlockState, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual
from regard.layers.frequencies import (
    DynamicNtkScaling,
    FrequencyScaling,
    LinearScaling,
    Llama3Scaling,
    NtkScaling,
    YarnScaling,
)
from regard.layers.gated import GatedHeads, GatedState
from regard.layers.hops import Hops
from regard.layers.local import Center, LocalAttention, monotonic_window
from regard.layers.location import Coverage, LocationFeatures, build_initial_weights, coverage_loss
from regard.layers.mechanism import Mechanism
from regard.layers.memory import Memory
from regard.layers.pooling import Pooling
from regard.layers.positions import LearnedPositions, Rotary, Sinusoidal, rotation, sinusoids
from regard.layers.projections import HeadProjections, PackedProjections, Projections

__all__ = [
    "Attention",
    "AttentionFlow",
    "Center",
    "CoAttention",
    "Coverage",
    "DecoderBlock",
    "DecoderBlockState",
    "DynamicNtkScaling",
    "EncoderBlock",
    "FeedForward",
    "FrequencyScaling",
    "GatedHeads",
    "GatedState",
    "HeadProjections",
    "Hops",
    "LearnedPositions",
    "LinearScaling",
    "Llama3Scaling",
    "LocalAttention",
    "LocationFeatures",
    "Mechanism",
    "Memory",
    "NtkScaling",
    "PackedProjections",
    "Pooling",
    "PostNorm",
    "PreNorm",
    "Projections",
    "Residual",
    "Rotary",
    "Sinusoidal",
    "Trilinear",
    "YarnScaling",
    "build_initial_weights",
    "coverage_loss",
    "monotonic_window",
    "rotation",
    "sinusoids",
]

for _name in __all__:
    if isinstance(globals()[_name], type):
        _explain_calls(globals()[_name])
        if issubclass(globals()[_name], _Module):
            _explain_attributes(globals()[_name])


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module 'regard.layers' has no attribute {name!r}")
    raise _missing_name_error("regard.layers", name, __all__)
