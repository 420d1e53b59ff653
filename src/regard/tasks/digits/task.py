"""How a classifier of digits is trained and measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.errors import wrong
from regard.tasks.data.canvas import place_on_canvas
from regard.tasks.data.gray_images import GrayImages, load_digit_images, read_idx_folder
from regard.tasks.data.text_files import locate_data
from regard.tasks.digits.config import DigitsData
from regard.tasks.digits.folder import has_digit_folders, read_image_folder
from regard.tasks.digits.model import build_classifier
from regard.tasks.images.jitter import jitter
from regard.tasks.tensor_task import DataSplits, Tensors, TensorTask
from regard.training import Goal, Loss

MOST_HELD_OUT = 5000  # pictures for validation


class DigitsTask(TensorTask):
    """Learns which of ten classes a picture is of."""

    units = "accuracy: percent of the pictures; loss: nats a picture"

    goal = Goal("accuracy", "higher")

    @property
    def batch(self) -> int:
        return int(self.config.learning.batch)

    @property
    def side(self) -> int:
        """Pixels in a row."""
        return int(self.sets.validation[0].shape[-1])

    def model(self) -> nn.Module:
        return build_classifier(self.config.model, self.side)

    def loss(self, model: Any, batch: Tensors) -> Loss:
        pictures, classes = batch
        seen = model(jitter(pictures[:, None], self.config.learning.jitter)[:, 0])
        return Loss(F.cross_entropy(seen.logits, classes, reduction="sum"), len(classes))

    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        pictures, classes = batch
        logits = model(pictures).logits
        right = float((logits.argmax(-1) == classes).sum())
        loss = float(F.cross_entropy(logits, classes, reduction="sum"))
        return {"items": float(len(classes)), "accuracy": 100 * right, "loss": loss}


def load_images(data: DigitsData) -> GrayImages:
    """Return scikit-learn's digits, or the pictures of a folder."""
    if data.source == "digits":
        return load_digit_images(data.seed)
    folder = locate_data(Path(data.source))
    return read_image_folder(folder) if has_digit_folders(folder) else read_idx_folder(folder)


def load_splits(data: DigitsData) -> DataSplits:
    """Return the pictures of this name; some of the training set are held out for validation."""
    found = load_images(data)
    pictures, classes = found.training
    usual = 150 if data.source == "digits" else max(1, min(MOST_HELD_OUT, len(classes) // 10))
    held_out = usual if data.validation is None else data.validation
    if not 0 < held_out < len(classes):
        expected = f"1 to {len(classes) - 1}, fewer than there are"
        raise wrong("data.validation", held_out, expected, "use a tenth of them")
    order = torch.from_numpy(np.random.default_rng([data.seed, 6]).permutation(len(classes)))
    held, rest = order[:held_out], order[held_out:]
    rest = rest[: data.training] if data.training else rest
    learned: tuple[Tensor, Tensor] = pictures[rest], classes[rest]

    def place(own: tuple[Tensor, Tensor], part: int) -> tuple[Tensor, Tensor]:
        seed = 1000 * data.seed + part
        return (place_on_canvas(own[0], data.canvas, data.clutter, seed), own[1]) if data.canvas else own

    held_pictures, test = place((pictures[held], classes[held]), 0), place(found.test, 1)
    return DataSplits(lambda epoch: place(learned, 2 + epoch), held_pictures, {"test": test})
