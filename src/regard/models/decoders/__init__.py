"""Decoders: all steps at once where the mechanism allows, and one step at a time."""

from regard.models.decoders.convolutional import ConvolutionalDecoder
from regard.models.decoders.recurrent import BahdanauDecoder, InputFeedingDecoder, LuongDecoder
from regard.models.decoders.transformer import TransformerDecoder

__all__ = ["BahdanauDecoder", "ConvolutionalDecoder", "InputFeedingDecoder", "LuongDecoder", "TransformerDecoder"]
