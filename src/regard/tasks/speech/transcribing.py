"""From sounds to what is said in them, whatever the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from regard.errors import wrong
from regard.models import Model
from regard.models.search import Beam, Hypothesis, Scoring, beam, best_of, greedy
from regard.tasks.data import END, Vocabulary
from regard.tasks.data.marks import MARKS
from regard.tasks.speech.heard import Frames, side_by_side
from regard.tasks.translation.numbered import alike


class Transcribed(NamedTuple):
    """What is said in a clip.

    `weights` has a row for each token and one for the end, a column for each position of the encoder; none where the
    model looks at nothing, or where nobody asked.
    """

    text: str
    score: float
    tokens: list[str]
    weights: Tensor | None


@dataclass(frozen=True, slots=True)
class Search:
    """How a text is looked for."""

    beam: int = 5
    length: float = 0.5  # help for long ones (Wu et al. 2016, eq. 14)
    budget: int = 12_000  # frames at once, padding included

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise wrong("beam", self.beam, "at least 1", "use 1 for greedy search, 5 for speech")


def transcribe(
    model: Model[Any], vocabulary: Vocabulary, clips: Sequence[Frames], search: Search, *, attention: bool = False
) -> list[Transcribed]:
    """The texts of clips, alike ones together, in the order they came."""
    found: dict[int, Transcribed] = {}
    for chosen in alike([len(clip) for clip in clips], search.budget):
        best = searched(model, [clips[index] for index in chosen], search, attention=attention)
        found |= {index: written(one, vocabulary) for index, one in zip(chosen, best, strict=True)}
    return [found[index] for index in range(len(clips))]


def searched(model: Model[Any], clips: Sequence[Frames], search: Search, *, attention: bool) -> list[Hypothesis]:
    """The best hypothesis of each of some clips of about the same length."""
    device = next(model.parameters()).device
    frames, lengths = (tensor.to(device) for tensor in side_by_side(clips))
    encoded = model.encode(frames, lengths)
    # Nobody says more symbols than the encoder has positions, but a short clip may come close.
    room = encoded.lengths + 10
    if search.beam == 1:
        return greedy(model.decoder, encoded, MARKS, room, attention=attention)
    plan = Beam(search.beam, 1, "exact", Scoring("wu", search.length))
    return best_of(beam(model.decoder, encoded, MARKS, room, plan=plan, attention=attention))


def written(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Transcribed:
    """A hypothesis in letters."""
    tokens = hypothesis.tokens
    return Transcribed(
        vocabulary.decode(tokens), hypothesis.score, vocabulary.tokens([*tokens, END]), hypothesis.weights
    )
