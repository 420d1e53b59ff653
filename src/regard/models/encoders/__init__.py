"""Encoders: from sources to what decoders read."""

from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.encoders.pyramidal import PyramidalEncoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.encoders.transformer import TransformerEncoder

__all__ = ["ConvolutionalEncoder", "PyramidalEncoder", "RecurrentEncoder", "TransformerEncoder"]
