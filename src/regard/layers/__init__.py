"""Layers: modules that hold parameters and nothing else. What they remember is passed in and out."""

from regard.layers.attention import Attention
from regard.layers.bidirectional import AttentionFlow, CoAttention, Trilinear
from regard.layers.blocks import DecoderBlock, DecoderState, EncoderBlock, FeedForward, Post, Pre, Residual
from regard.layers.gated import GatedHeads, GatedState
from regard.layers.hops import Hops
from regard.layers.local import Center, Local, monotonic_window
from regard.layers.location import Coverage, LocationAware, coverage_loss, unseen
from regard.layers.mechanism import Mechanism
from regard.layers.memory import Memory
from regard.layers.pooling import Pooling
from regard.layers.positions import Learned, Rotary, Sinusoidal, rotation, sinusoids
from regard.layers.projections import Heads, Packed, Projections

__all__ = [
    "Attention",
    "AttentionFlow",
    "Center",
    "CoAttention",
    "Coverage",
    "DecoderBlock",
    "DecoderState",
    "EncoderBlock",
    "FeedForward",
    "GatedHeads",
    "GatedState",
    "Heads",
    "Hops",
    "Learned",
    "Local",
    "LocationAware",
    "Mechanism",
    "Memory",
    "Packed",
    "Pooling",
    "Post",
    "Pre",
    "Projections",
    "Residual",
    "Rotary",
    "Sinusoidal",
    "Trilinear",
    "coverage_loss",
    "monotonic_window",
    "rotation",
    "sinusoids",
    "unseen",
]
