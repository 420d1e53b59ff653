"""From images to captions, each word with where it was looked for."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch

from regard.models import Beam, Encoded, Hypothesis, Model, Scoring, beam, greedy
from regard.models.encoders.grid import GridEncoder
from regard.models.search import best_of
from regard.shapes import Float, Tensor
from regard.tasks.data import Vocabulary
from regard.tasks.data.marks import MARKS

TOGETHER = 100  # images at once
LONGEST = 40  # words of a caption, at most


class Told(NamedTuple):
    """What was said of one image: words and a row of weights over its regions for each, none without attention."""

    text: str
    words: list[str]
    score: float
    weights: Float[Tensor, "word region"] | None


def tell(
    model: Model[Any],
    vocabulary: Vocabulary,
    source: Tensor,
    *,
    plan: Beam | None = None,
    attention: bool = False,
) -> list[Told]:
    """A caption for each image, by greedy search where there is no plan of another."""
    with torch.inference_mode():
        encoded = seen(model, source.to(next(model.parameters()).device))
        if plan is None:
            found = greedy(model.decoder, encoded, MARKS, LONGEST, attention=attention)
        else:
            several = beam(model.decoder, encoded, MARKS, LONGEST, plan=plan, attention=attention)
            found = best_of(several)
    return [told(one, vocabulary) for one in found]


def plan_of(width: int, length: float) -> Beam | None:
    """A beam, none where it is one wide. A `length` of 0 takes the log-probability, 1 its mean over the words."""
    return None if width == 1 else Beam(width, 1, "exact", Scoring("average", length))


def seen(model: Model[Any], source: Tensor) -> Encoded:
    """Images as a decoder reads them: all have as many regions."""
    regions = cast(GridEncoder, model.encoder).regions
    return model.encode(source, torch.full((len(source),), regions, device=source.device))


def told(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Told:
    """A hypothesis in words. What it looked at when it ended is left out."""
    weights = None if hypothesis.weights is None else hypothesis.weights[:-1]
    words = vocabulary.tokens(hypothesis.tokens)
    return Told(vocabulary.decode(hypothesis.tokens), words, hypothesis.score, weights)


def groups(count: int) -> Sequence[range]:
    """Numbers of images that are looked at together."""
    return [range(start, min(count, start + TOGETHER)) for start in range(0, count, TOGETHER)]
