"""Predictions of a trained classifier of digits."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.inspect.draw.chapters import Regions
from regard.inspect.draw.words import Language
from regard.models import count_parameters
from regard.tasks.digits.model import DigitsOutput
from regard.tasks.digits.task import load_splits
from regard.tasks.images.photos import as_tensor, open_photo, resize_to_square
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, no_attention_error
from regard.tasks.tensor_task import TensorPredictor, parse_item_number

if TYPE_CHECKING:
    from PIL.Image import Image

UNIT = "accuracy: percent of the pictures; loss: nats a picture"


class DigitsPredictor(TensorPredictor):
    """Classifies pictures."""

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        sets = self.task.sets if data is None else load_splits(replace(self.task.config.data, source=data))
        notes = [UNIT, f"{count_parameters(self.model):,} parameters"]
        return self.task.evaluate_sets(self.model, sets.get_held_out(split), notes)

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


def convert_photo(photo: "Image", side: int) -> Tensor:
    """Return a photograph as the training pictures are: ink is 1 and paper 0, whichever is the lighter."""
    gray = as_tensor(resize_to_square(photo, side)).mean(0)
    return 1 - gray if float(gray.mean()) > 0.5 else gray


def build_map(seen: DigitsOutput) -> LabeledWeights | None:
    """Return a row of weights for each glimpse of each head, with a column for each region."""
    if seen.weights is None:
        return None
    rows = seen.weights[0].flatten(2).flatten(0, 1)
    heads = seen.weights.shape[2]
    names = [f"glimpse {row // heads + 1} head {row % heads}" for row in range(len(rows))]
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
