"""Predictions of a trained classifier of digits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.datasets.locations import find_data
from regard.inspect.draw.chapters import Regions
from regard.inspect.draw.words import Language
from regard.models import count_parameters
from regard.tasks.data.held_out import is_same_source
from regard.tasks.digits.folder import convert_photo, has_digit_folders, list_images, read_images
from regard.tasks.digits.model import DigitsOutput
from regard.tasks.digits.task import load_splits
from regard.tasks.images.photos import open_photo
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, no_attention_error
from regard.tasks.tensor_task import DataSplits, TensorPredictor, Tensors, TensorTask, parse_item_number


class DigitsPredictor(TensorPredictor):
    """Classifies pictures."""

    def __init__(self, task: TensorTask, model: Any) -> None:
        super().__init__(task, model)
        self.parameters = count_parameters(model)  # now: prepacked matrices are not parameters any more

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        notes = [self.task.units, f"{self.parameters:,} parameters"]
        return self.task.evaluate_sets(self.model, self.open_sets(data, split), notes)

    def open_sets(self, data: str | None, split: HeldOutSplit) -> Mapping[str, Tensors]:
        """Return what the run held out, or other pictures; all of a folder that does not say what is for tests."""
        own = self.task.config.data
        if data is None or is_same_source(data, own.source):
            sets: DataSplits = self.task.sets
            return sets.get_held_out(split)
        folder = find_data(Path(data))
        if folder is not None and has_digit_folders(folder):
            return {folder.name: read_images(folder, list_images(folder), self.side)}
        return load_splits(replace(own, source=data)).get_held_out(split)

    def predict(self, words: Sequence[str]) -> Prediction:
        """Classify a picture of the test set, by its number, or an image file."""
        if len(words) == 1 and not words[0].isdecimal():
            return self.build_prediction(convert_photo(open_photo(Path(words[0])), self.side), words[0])
        pictures, classes = next(iter(self.task.sets.tests.values()))
        number = parse_item_number(words, len(classes))
        found, meant = self.build_prediction(pictures[number], number), int(classes[number])
        text = f"picture {number} of the test set: {found.text}, is {meant}"
        return found._replace(text=text, values={**found.values, "is": meant})

    @property
    def side(self) -> int:
        """The pixels of a side of the pictures."""
        return int(self.task.sets.validation[0].shape[-1])

    def build_prediction(self, picture: Tensor, name: int | str) -> Prediction:
        """Classify one picture."""
        with torch.no_grad():
            seen: DigitsOutput = self.model(picture[None].to(next(self.model.parameters()).device))
        shares = seen.logits[0].softmax(-1)
        answer = int(shares.argmax())
        values = {"picture": name, "class": answer, "probabilities": shares.tolist()}
        text = f"{answer} ({100 * float(shares[answer]):.1f} %)"
        medium = None if seen.weights is None else build_medium(picture, seen.weights.shape[-1])
        return Prediction(text, values, partial(draw_attention, picture, seen), build_map(seen), medium=medium)


def build_medium(picture: Tensor, side: int) -> Regions:
    """Return a picture, as dark ink on paper, whose regions are attended to."""
    gray = (255 * (1 - picture / picture.max().clamp(min=1e-6))).clamp(0, 255).to(torch.uint8).cpu().numpy()
    return Regions(gray[..., None].repeat(3, axis=-1), (side, side))


def build_map(seen: DigitsOutput) -> LabeledWeights | None:
    """Return a row of weights for each glimpse of each head, with a column for each region."""
    if seen.weights is None:
        return None
    rows = seen.weights[0].flatten(2).flatten(0, 1)
    heads = seen.weights.shape[2]
    names = [f"glimpse {row // heads} head {row % heads}" for row in range(len(rows))]
    side = seen.weights.shape[-1]
    return LabeledWeights(
        rows.tolist(),
        [f"{region // side},{region % side}" for region in range(rows.shape[1])],
        names,
        f"attention over {side} × {side} regions: row,column",
    )


def draw_attention(picture: Tensor, seen: DigitsOutput, title: str = "", language: Language = "en") -> Any:
    """Draw the picture, and the weights of each glimpse over it."""
    from regard.inspect.draw.glimpses import draw_glimpses

    if seen.weights is None:
        raise no_attention_error("network", "its picture", "gated")
    gates = None if seen.gates is None else seen.gates[0].cpu().numpy()
    return draw_glimpses(picture.cpu().numpy(), seen.weights[0].cpu().numpy(), gates, title, language=language)
