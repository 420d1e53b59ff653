"""From questions to answers."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from regard.tasks.data.batches import group_by_length
from regard.tasks.reading.examples import ReadingExample, collate_inputs
from regard.tasks.reading.model import SpanReader, find_best_spans

BUDGET = 12_000  # words of passages at once


class PredictedAnswer(NamedTuple):
    """The words of the passage that answer, their probability, and the attention of each word to the question.

    `weights` has a row for each word of the passage and a column for each of the question; none if the model has
    no attention, or if nobody asked.
    """

    text: str
    first: int
    last: int
    probability: float
    weights: Tensor | None
    passage_weights: Tensor | None = None  # of the words of the passage, for the question as a whole


def answer_questions(
    model: SpanReader, examples: Sequence[ReadingExample], longest: int, *, attention: bool = False
) -> list[PredictedAnswer]:
    """Answer questions, those with passages of like length together, and return the answers in their order."""
    found: dict[int, PredictedAnswer] = {}
    device = next(model.parameters()).device
    for chosen in group_by_length([len(page.passage) for page in examples], BUDGET):
        some = [examples[index] for index in chosen]
        pointed = model(collate_inputs(some).to(device))
        flow = pointed.flow if attention else None
        weights, back = (None, None) if flow is None else (flow.question.weights.dense(), flow.context.weights.dense())
        spans = zip(*(part.tolist() for part in find_best_spans(pointed, longest)), strict=True)
        for row, (index, page, (first, last, score)) in enumerate(zip(chosen, some, spans, strict=True)):
            own = None if weights is None else weights[row, : len(page.passage), : len(page.question)]
            text = page.extract_text(first, last) if page.words else ""
            other = None if back is None else back[row].flatten()[: len(page.passage)]
            found[index] = PredictedAnswer(text, first, last, math.exp(score), own, other)
    return [found[index] for index in range(len(examples))]
