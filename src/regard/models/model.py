"""An encoder–decoder and its loss."""

from typing import Generic, NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.errors import wrong
from regard.models.interface import Decoder, Encoder, EncoderOutput, State
from regard.models.kernels.cross_entropy import cross_entropy


class Losses(NamedTuple):
    """Sums over the target tokens: sums add over batches, means do not."""

    total: Float[Tensor, ""]  # smoothed; has a gradient
    negative_log_likelihood: Float[Tensor, ""]  # perplexity is exp of this / tokens
    tokens: int


class EncoderDecoder(nn.Module, Generic[State]):
    """Encodes a source and predicts a target."""

    def __init__(self, encoder: Encoder, decoder: Decoder[State]) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        """Encode a batch of sources."""
        encoded: EncoderOutput = self.encoder(source, lengths)
        return encoded

    def forward(
        self, source: Tensor, lengths: Int[Tensor, " batch"], tokens: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return the scores of the next token after each of the given ones."""
        logits: Tensor = self.decoder(tokens, self.encode(source, lengths))
        return logits

    def loss(
        self,
        source: Tensor,
        lengths: Int[Tensor, " batch"],
        target: Int[Tensor, "batch longest"],
        target_lengths: Int[Tensor, " batch"],
        *,
        smoothing: float = 0.0,
    ) -> Losses:
        """Return the loss of targets that begin with a start token and end with an end token, under teacher forcing.

        `target_lengths` count both. The vocabulary's matrix is multiplied for the tokens to be predicted alone, not
        for padding.
        """
        inputs, steps = target[:, :-1], target_lengths - 1
        if int(steps.min()) < 1:
            fix = "begin each target with a start token and end it with an end token"
            raise wrong("target_lengths", int(target_lengths.min()), "at least 2", fix)
        vectors = self.decoder.teacher_force(inputs, self.encode(source, lengths), steps).vectors
        real = torch.arange(inputs.shape[1], device=inputs.device) < steps[:, None]
        output = self.decoder.output
        wanted = target[:, 1:][real]
        judged = cross_entropy(vectors[real], output.weight, output.bias, wanted, smoothing=smoothing)
        return Losses(judged.total, judged.negative_log_likelihood, len(wanted))
