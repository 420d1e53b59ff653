"""A reader of stories, asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.tasks.memory.config import MemoryConfig
from regard.tasks.memory.stories import WORDS, generate_stories, parse_story, to_tensors
from regard.tasks.memory.task import MemoryTask, build_task
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, load_model


class MemoryPredictor:
    """The model of a run."""

    def __init__(self, learned: MemoryTask, model: Any) -> None:
        self.task, self.model = learned, model

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        """By the number of facts that an answer follows from."""
        if data is not None:
            raise wrong("data", data, "none: stories are generated", "leave it out")
        return self.task.evaluate_sets(self.model, self.task.sets.get_held_out(split))

    def predict(self, words: Sequence[str]) -> Prediction:
        """The answer to a story of somebody's own, or to one that was held out."""
        data = self.task.config.data
        if words:
            one, (facts, question, *_) = parse_story(" ".join(words), data)
        else:
            one = generate_stories(data, 3, (2, 9))[-1]
            facts, question, *_ = to_tensors([one], data)
        with torch.no_grad():
            found = self.model(facts, question)
        answer = WORDS[int(found.logits[0].argmax())]
        weights = found.weights[0, :, : len(one.facts)].flip(-1)  # the latest was first
        rows = [f"hop {number + 1}" for number in range(len(weights))]
        shown = LabeledWeights(weights.T.tolist(), rows, one.facts)  # a row for each fact, a column for each hop
        right = f", is {one.answer}" if one.answer else ""
        text = "\n".join([*(f"{fact}." for fact in one.facts), f"{one.question}? {answer}{right}"])
        values = {"facts": one.facts, "question": one.question, "answer": answer, "weights": weights.tolist()}
        return Prediction(text, values, shown.draw, shown)


def load(config: MemoryConfig, run: Path, weights: Path | None = None) -> MemoryPredictor:
    """The model of a run folder."""
    learned = build_task(config, run)
    return MemoryPredictor(learned, load_model(learned.model, config.training, run, weights))
