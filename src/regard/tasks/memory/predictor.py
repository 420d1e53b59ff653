"""Predictions of a trained memory network."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from regard.errors import wrong
from regard.inspect.draw.words import Language, localize
from regard.inspect.observe import observe
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.recorded_attention import join_rows, label_map, select_keys
from regard.tasks.tensor_task import TensorPredictor


class MemoryPredictor(TensorPredictor):
    """Answers questions about stories."""

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        """Evaluate by the number of facts that an answer follows from."""
        if data is not None:
            raise wrong("data", data, "none: stories are generated", "leave it out")
        return self.task.evaluate_sets(self.model, self.task.sets.get_held_out(split), [self.task.units])

    def predict(self, words: Sequence[str]) -> Prediction:
        """Answer a question about a given story, or about one that was held out."""
        form = self.task.sets.form
        if words:
            one, (facts, question, *_) = form.parse_story(" ".join(words))
        else:
            one = self.task.sets.example
            facts, question, *_ = form.to_tensors([one])
        device = next(self.model.parameters()).device
        with torch.no_grad(), observe(self.model, vectors=True) as seen:
            found = self.model(facts.to(device), question.to(device))
        answer = form.words[int(found.logits[0].argmax())]
        weights = found.weights[0, :, : len(one.facts)].flip(-1)  # the latest was first
        hops = [f"hop {number}" for number in range(len(weights))]
        shown = LabeledWeights(
            weights.T.tolist(), hops, one.facts, "attention of each hop over the facts"
        )  # a row for each fact, a column for each hop
        hopped = select_keys(join_rows(list(seen.values())), range(len(one.facts))[::-1])
        recording = label_map(hopped, hops, one.facts)
        right = f", is {one.answer}" if one.answer else ""
        text = "\n".join([*(f"{fact}." for fact in one.facts), f"{one.question}? {answer}{right}"])
        values = {"facts": one.facts, "question": one.question, "answer": answer, "weights": weights.tolist()}
        return Prediction(text, values, partial(draw_hops, shown, f"{one.question}?", answer), shown, recording)


def draw_hops(shown: LabeledWeights, question: str, answer: str, title: str = "", language: Language = "en") -> Any:
    """Draw which facts each hop attended to, below question and answer."""
    hops = [localize("hop {}", language).format(number) for number in range(len(shown.columns))]
    asked = localize("question: {}", language).format(question)
    answered = localize("answer: {}", language).format(answer)
    lines = "\n".join(filter(None, (title, asked, answered)))
    return shown._replace(columns=hops).draw(lines, language, ("fact", "hop"))
