"""Layers: modules that hold parameters and nothing else. State is passed in and out."""

from regard.layers.attention import Attention
from regard.layers.bidirectional import AttentionFlow, CoAttention, Trilinear
from regard.layers.blocks import DecoderBlock, DecoderBlockState, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual
from regard.layers.gated import GatedHeads, GatedState
from regard.layers.hops import Hops
from regard.layers.local import Center, LocalAttention, monotonic_window
from regard.layers.location import Coverage, LocationFeatures, build_initial_weights, coverage_loss
from regard.layers.mechanism import Mechanism
from regard.layers.memory import Memory
from regard.layers.pooling import Pooling
from regard.layers.positions import LearnedPositions, RotaryPositions, SinusoidalPositions, rotation, sinusoids
from regard.layers.projections import HeadProjections, PackedProjections, Projections

__all__ = [
    "Attention",
    "AttentionFlow",
    "Center",
    "CoAttention",
    "Coverage",
    "DecoderBlock",
    "DecoderBlockState",
    "EncoderBlock",
    "FeedForward",
    "GatedHeads",
    "GatedState",
    "HeadProjections",
    "Hops",
    "LearnedPositions",
    "LocalAttention",
    "LocationFeatures",
    "Mechanism",
    "Memory",
    "PackedProjections",
    "Pooling",
    "PostNorm",
    "PreNorm",
    "Projections",
    "Residual",
    "RotaryPositions",
    "SinusoidalPositions",
    "Trilinear",
    "build_initial_weights",
    "coverage_loss",
    "monotonic_window",
    "rotation",
    "sinusoids",
]
