"""Models: encoders and decoders behind one interface, searches that know no more than it, and configurations."""

from regard.models.build import build, count_parameters
from regard.models.config import PRESETS, ModelConfig
from regard.models.interface import Advanced, Alignment, Decoder, Encoded, Encoder, Step, Taught
from regard.models.model import Losses, Model
from regard.models.search import Beam, Hypothesis, Marks, Sampling, Scoring, beam, greedy, sample
from regard.models.selecting import select

__all__ = [
    "PRESETS",
    "Advanced",
    "Alignment",
    "Beam",
    "Decoder",
    "Encoded",
    "Encoder",
    "Hypothesis",
    "Losses",
    "Marks",
    "Model",
    "ModelConfig",
    "Sampling",
    "Scoring",
    "Step",
    "Taught",
    "beam",
    "build",
    "count_parameters",
    "greedy",
    "sample",
    "select",
]
