"""An answerer that was trained, ready to be asked."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.datasets.cleaning import clean
from regard.errors import wrong
from regard.inspect.draw.chapters import Regions
from regard.tasks.data import Vocabulary
from regard.tasks.images import as_tensor, open_photo, reduced, squeezed
from regard.tasks.images.photos import pillow
from regard.tasks.images.regions import grid_of, region_names
from regard.tasks.predicting import Map, Prediction, Report, Split, trained
from regard.tasks.vqa.answering import Answerer, Batch
from regard.tasks.vqa.config import VqaConfig
from regard.tasks.vqa.questions import Exhibition, open_questions, plain
from regard.tasks.vqa.task import Vqa, answerer, kept, numbered
from regard.training import Part

if TYPE_CHECKING:
    from PIL.Image import Image


class Oracle:
    """Answers questions about images, and shows which region it looked at."""

    def __init__(self, config: VqaConfig, vocabulary: Vocabulary, answers: list[str], model: Answerer) -> None:
        self.config, self.vocabulary, self.answers, self.model = config, vocabulary, answers, model

    @cached_property
    def exhibition(self) -> Exhibition:
        """The data of the run."""
        return open_questions(self.config.data)

    def evaluate(self, data: str | None, split: Split) -> dict[str, Report]:
        shown = self.exhibition if data is None else open_questions(replace(self.config.data, questions=data))
        known = Vqa(self.config, shown, self.vocabulary, self.answers)
        gallery = shown.test if split == "test" else shown.validation
        with torch.inference_mode():
            found = known.metrics(known.counted(self.model, gallery, Part()))
        return {split: Report(len(gallery.questions), found)}

    def predict(self, words: Sequence[str]) -> Prediction:
        if len(words) == 1:
            fix = 'write the question behind the image, in quotes: photo.png "what color is the circle?"'
            raise wrong("question", "none", "an image and a question", fix)
        if words:
            return self.answered(open_photo(Path(words[0])), " ".join(words[1:]))
        first = self.exhibition.test.questions[0]
        return self.answered(pillow().fromarray(self.exhibition.test.pixels[first.image]), first.text)

    def answered(self, photo: "Image", question: str) -> Prediction:
        """The answer to one question about one image."""
        text = self.checked(question)
        pixels = as_tensor(squeezed(photo, self.config.data.pixels))[None]
        none = torch.zeros(1, dtype=torch.long)
        batch = Batch(pixels, *numbered([text], self.vocabulary), owners=none, answers=none)
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            found = self.model(Batch(*(tensor.to(device) for tensor in batch)))
        looks = found.looks[0].cpu()
        ranked = sorted(zip(found.scores[0].softmax(-1).tolist(), self.answers, strict=True), reverse=True)[:3]
        answer = ranked[0][1]
        values = {
            "question": question,
            "answer": answer,
            "shares": {name: round(share, 6) for share, name in ranked},
            "weights": [[round(weight, 6) for weight in row] for row in looks.tolist()],
        }
        rows = [f"look {number}" for number in range(1, len(looks) + 1)]
        shown = Map(looks.tolist(), region_names(looks.shape[1]), rows)
        beside = Regions(reduced(photo), grid_of(looks.shape[1]))
        title = f"{question} {answer}"
        return Prediction(answer, values, lambda: drawn(photo, looks.numpy(), rows, title), shown, beside=beside)

    def checked(self, question: str) -> str:
        """The words of a question; raises where there are none, too many, or some that nobody has taught it."""
        text = plain(clean(question, "question"))
        words, limit = text.split(), self.config.data.limit
        if not words:
            raise wrong("question", "no words", "a question", "write it in quotes behind the image")
        if len(words) > limit:
            raise wrong("question", f"{len(words)} words", f"at most {limit}", "ask in fewer words")
        unknown = dict.fromkeys(self.vocabulary.unknown(text))
        if unknown:
            known = sorted(self.vocabulary.tokens(range(4, len(self.vocabulary))))
            some = f"words that it was taught: {', '.join(known[:40])}{', …' if len(known) > 40 else ''}"
            raise wrong("question", f"the unknown {', '.join(map(repr, unknown))}", some, "ask with those")
        return text


def drawn(photo: "Image", looks: np.ndarray, rows: Sequence[str], title: str) -> Any:
    """The image once for each look."""
    from regard.inspect.draw.overlay import overlay

    return overlay(np.asarray(photo), looks, rows, title=title)


def load(config: VqaConfig, run: Path, weights: Path | None = None) -> Oracle:
    """The answerer of a run folder, with its best weights or others."""
    vocabulary, answers = kept(run)
    model = trained(lambda: answerer(config, len(vocabulary), len(answers)), config.training, run, weights)
    return Oracle(config, vocabulary, answers, model)  # type: ignore[arg-type]
