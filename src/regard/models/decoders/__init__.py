"""Decoders: all steps at once where the mechanism allows, and one step at a time."""

from regard.models.decoders.convolutional import ConvolutionalDecoder
from regard.models.decoders.recurrent import Bahdanau, Feeding, Luong
from regard.models.decoders.transformer import TransformerDecoder

__all__ = ["Bahdanau", "ConvolutionalDecoder", "Feeding", "Luong", "TransformerDecoder"]
