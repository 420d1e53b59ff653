"""Greedy and beam search with the special tokens of our vocabularies."""

from typing import Any

from torch import Tensor

from regard.models import EncoderOutput
from regard.models.search import BeamOptions, Hypothesis, SpecialTokens, beam_search, greedy_search
from regard.tasks.data.vocabulary import BEGIN, END, PADDING, UNKNOWN

SPECIAL_TOKENS = SpecialTokens(begin=BEGIN, end=END, never=(PADDING, UNKNOWN, BEGIN))


def search(
    decoder: Any, encoded: EncoderOutput, room: Tensor | int, options: BeamOptions | None, *, attention: bool
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each source, of at most `room` tokens; without options, those of greedy search."""
    if options is None:
        return [[best] for best in greedy_search(decoder, encoded, SPECIAL_TOKENS, room, attention=attention)]
    return beam_search(decoder, encoded, SPECIAL_TOKENS, room, options=options, attention=attention)
