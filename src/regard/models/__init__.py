"""Models: encoders and decoders behind one interface, searches that know no more than it, and configurations."""

from regard.models.build import build_model, count_parameters
from regard.models.config import PRESETS, ModelConfig
from regard.models.interface import DecoderStep, Alignment, Decoder, EncoderOutput, Encoder, StepLogits, TeacherForcingOutput
from regard.models.model import Losses, EncoderDecoder
from regard.models.search import BeamOptions, Hypothesis, SpecialTokens, SamplingOptions, HypothesisScorer, beam_search, greedy_search, sample
from regard.models.selecting import select

__all__ = [
    "PRESETS",
    "DecoderStep",
    "Alignment",
    "BeamOptions",
    "Decoder",
    "EncoderOutput",
    "Encoder",
    "Hypothesis",
    "Losses",
    "SpecialTokens",
    "EncoderDecoder",
    "ModelConfig",
    "SamplingOptions",
    "HypothesisScorer",
    "StepLogits",
    "TeacherForcingOutput",
    "beam_search",
    "build_model",
    "count_parameters",
    "greedy_search",
    "sample",
    "select",
]
