"""Models: encoders and decoders behind one interface, searches over that interface, and configurations."""

from regard.algebra.foreign_names import explain_attributes as _explain_attributes
from regard.algebra.foreign_names import missing_name_error as _missing_name_error
from regard.models.builder import build_model, count_parameters
from regard.models.config import PRESETS, ModelConfig
from regard.models.interface import (
    Alignment,
    Decoder,
    DecoderStep,
    Encoder,
    EncoderOutput,
    StepLogits,
    TeacherForcingOutput,
)
from regard.models.model import EncoderDecoder, Losses
from regard.models.search import (
    BeamOptions,
    Hypothesis,
    HypothesisScorer,
    SamplingOptions,
    SpecialTokens,
    beam_search,
    greedy_search,
    sample,
)
from regard.models.selection import select

_explain_attributes(EncoderDecoder)


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module 'regard.models' has no attribute {name!r}")
    raise _missing_name_error("regard.models", name, __all__)


__all__ = [
    "PRESETS",
    "Alignment",
    "BeamOptions",
    "Decoder",
    "DecoderStep",
    "Encoder",
    "EncoderDecoder",
    "EncoderOutput",
    "Hypothesis",
    "HypothesisScorer",
    "Losses",
    "ModelConfig",
    "SamplingOptions",
    "SpecialTokens",
    "StepLogits",
    "TeacherForcingOutput",
    "beam_search",
    "build_model",
    "count_parameters",
    "greedy_search",
    "sample",
    "select",
]
