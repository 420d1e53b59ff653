"""From sounds to transcripts, whatever the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from regard.errors import wrong
from regard.models import EncoderDecoder
from regard.models.search import BeamOptions, Hypothesis, HypothesisScorer, take_best
from regard.tasks.data import END, Vocabulary, special_tokens
from regard.tasks.data.batches import map_by_length
from regard.tasks.speech.encoded_clips import Frames, pad_frames


class Transcript(NamedTuple):
    """The transcript of a clip.

    `weights` has a row for each token and one for the end, a column for each position of the encoder; none if the
    model has no attention, or if nobody asked.
    """

    text: str
    score: float
    tokens: list[str]
    weights: Tensor | None
    numbers: Sequence[int] = ()  # the tokens without the end, as the decoder has them


@dataclass(frozen=True, slots=True)
class SpeechSearchOptions:
    """Options of the search for a transcript."""

    beam: int = 5
    length_penalty: float = 0.5  # exponent that favors long ones (Wu et al. 2016, eq. 14)
    budget: int = 12_000  # frames at once, padding included

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise wrong("beam", self.beam, "at least 1", "use 1 for greedy search, 5 for speech")


def transcribe(
    model: EncoderDecoder[Any],
    vocabulary: Vocabulary,
    clips: Sequence[Frames],
    search: SpeechSearchOptions,
    *,
    attention: bool = False,
) -> list[Transcript]:
    """Return the transcripts of clips in their order; clips of like length are computed together."""
    best = map_by_length(clips, search.budget, lambda some: search_batch(model, some, search, attention=attention))
    return [decode_transcript(one, vocabulary) for one in best]


def search_batch(
    model: EncoderDecoder[Any], clips: Sequence[Frames], search: SpeechSearchOptions, *, attention: bool
) -> list[Hypothesis]:
    """Return the best hypothesis of each clip of a batch."""
    device = next(model.parameters()).device
    frames, lengths = (tensor.to(device) for tensor in pad_frames(clips))
    encoded = model.encode(frames, lengths)
    # Speech does not have more symbols than the encoder has positions, but a short clip may come close.
    room = encoded.lengths + 10
    scorer = HypothesisScorer("wu", search.length_penalty)
    options = None if search.beam == 1 else BeamOptions(search.beam, 1, "exact", scorer)
    return take_best(special_tokens.search(model.decoder, encoded, room, options, attention=attention))


def decode_transcript(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Transcript:
    """Return a hypothesis as a transcript."""
    tokens = hypothesis.tokens
    return Transcript(
        vocabulary.decode(tokens), hypothesis.score, vocabulary.get_tokens([*tokens, END]), hypothesis.weights, tokens
    )
