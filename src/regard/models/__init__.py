"""Models: encoders and decoders behind one interface, searches that know no more than it, and configurations."""

from regard.models.build import build, count_parameters
from regard.models.config import PRESETS, ModelConfig
from regard.models.interface import Advanced, Alignment, Decoder, Encoded, Encoder, Step, Taught
from regard.models.model import Losses, Model
from regard.models.selecting import select

__all__ = [
    "PRESETS",
    "Advanced",
    "Alignment",
    "Decoder",
    "Encoded",
    "Encoder",
    "Losses",
    "Model",
    "ModelConfig",
    "Step",
    "Taught",
    "build",
    "count_parameters",
    "select",
]
