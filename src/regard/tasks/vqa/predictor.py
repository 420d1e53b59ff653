"""Predictions of a trained model that answers questions about images."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.datasets.text import clean
from regard.errors import wrong
from regard.inspect.draw.words import Language, localize
from regard.inspect.observe import observe
from regard.inspect.recording import Recording
from regard.tasks.data import Vocabulary
from regard.tasks.data.held_out import is_same_source
from regard.tasks.data.vocabulary import SPECIAL
from regard.tasks.data.words import join_words, normalize_words
from regard.tasks.images import as_tensor, open_photo, resize_to_square
from regard.tasks.images.photos import import_pillow
from regard.tasks.images.regions import build_region_prediction, draw_regions, name_regions
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, Prediction
from regard.tasks.recorded_attention import find_maps, join_rows, label_map
from regard.tasks.vqa.config import VqaConfig
from regard.tasks.vqa.model import Answerer, VqaBatch
from regard.tasks.vqa.questions import VqaDataset, VqaSplit, has_no_splits, read_split
from regard.tasks.vqa.source import open_questions
from regard.tasks.vqa.task import VqaTask, encode_questions
from regard.training import DataShare

if TYPE_CHECKING:
    from PIL.Image import Image


class VqaPredictor:
    """Evaluates an answerer, and answers one question about an image."""

    def __init__(self, config: VqaConfig, vocabulary: Vocabulary, answers: list[str], model: Answerer) -> None:
        self.config, self.vocabulary, self.answers, self.model = config, vocabulary, answers, model

    @cached_property
    def dataset(self) -> VqaDataset:
        """The data of the run."""
        return open_questions(self.config.data)

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        name, gallery = self.open_split(data, split)
        known = VqaTask(self.config, VqaDataset(gallery, gallery, gallery), self.vocabulary, self.answers)
        with torch.inference_mode():
            found = known.metrics(known.count_correct(self.model, gallery, DataShare()))
        return {name: EvaluationReport(len(gallery.questions), found, [VqaTask.units])}

    def open_split(self, data: str | None, split: HeldOutSplit) -> tuple[str, VqaSplit]:
        """Return what the run held out, or other images; all of a folder that does not say what is for tests."""
        if data is None or is_same_source(data, self.config.data.questions):
            dataset = self.dataset
        else:
            other = replace(self.config.data, questions=data)
            if has_no_splits(Path(data)):
                return Path(data).name, read_split(Path(data), other)
            dataset = open_questions(other)
        return split, dataset.test if split == "test" else dataset.validation

    def predict(self, words: Sequence[str]) -> Prediction:
        if len(words) == 1:
            fix = 'write the question behind the image, in quotes: photo.png "what color is the circle?"'
            raise wrong("question", "none", "an image and a question", fix)
        if words:
            return self.answer_question(open_photo(Path(words[0])), " ".join(words[1:]))
        first = self.dataset.test.questions[0]
        return self.answer_question(
            import_pillow().fromarray(self.dataset.test.pixels[first.image]), join_words(first.text)
        )

    def answer_question(self, photo: "Image", question: str) -> Prediction:
        """Answer one question about one image."""
        text = self.check_question(question)
        pixels = as_tensor(resize_to_square(photo, self.config.data.pixels))[None]
        none = torch.zeros(1, dtype=torch.long)
        batch = VqaBatch(pixels, *encode_questions([text], self.vocabulary), image_indices=none, answers=none)
        device = next(self.model.parameters()).device
        with torch.inference_mode(), observe(self.model, sites="looker.*", vectors=True) as seen:
            found = self.model(VqaBatch(*(tensor.to(device) for tensor in batch)))
        weights = found.weights[0].cpu()
        ranked = sorted(zip(found.scores[0].softmax(-1).tolist(), self.answers, strict=True), reverse=True)[:3]
        answer = ranked[0][1]
        values = {
            "question": question,
            "answer": answer,
            "shares": {name: round(share, 6) for share, name in ranked},
        }
        rows = [f"look {number}" for number in range(len(weights))]
        found_there = build_region_prediction(answer, values, photo, weights, rows)
        recording = self.build_recording(seen, rows, text.split(), name_regions(weights.shape[1]))

        def draw(title: str = "", language: Language = "en") -> Any:
            """Draw the image and each attention step over it, below question and answer."""
            asked = localize("question: {}", language).format(join_words(question))
            answered = localize("answer: {}", language).format(join_words(answer))
            looks = [localize("look {}", language).format(number) for number in range(len(weights))]
            return draw_regions(photo, weights, looks, "\n".join(filter(None, (title, asked, answered))), language)

        return found_there._replace(draw=draw, recording=recording)

    def build_recording(
        self, seen: Recording, looks: list[str], words: list[str], regions: list[str]
    ) -> Recording | None:
        """Return where each look went: of each word and head, if words look; None without attention."""
        kind = self.config.model.kind
        if kind == "transformer":
            found = Recording(dict(zip(looks, find_maps(seen, "looker.look."), strict=True)))
            found.label(words, regions)
            return found
        maps = find_maps(seen, "looker.hops." if kind == "stacked" else "looker.look")[: len(looks)]
        return label_map(join_rows(maps), looks, regions) if maps else None

    def check_question(self, question: str) -> str:
        """Return the words of a question; raise if there are none, too many, or unknown ones."""
        text = normalize_words(clean(question, "question"), self.config.data.words)
        words, limit = text.split(), self.config.data.limit
        if not words:
            raise wrong("question", "no words", "a question", "write it in quotes behind the image")
        if len(words) > limit:
            raise wrong("question", f"{len(words)} words", f"at most {limit}", "ask in fewer words")
        unknown = dict.fromkeys(self.vocabulary.find_unknown(text))
        if unknown:
            known = sorted(self.vocabulary.get_tokens(range(len(SPECIAL), len(self.vocabulary))))
            some = f"words that it was taught: {', '.join(known[:40])}{', …' if len(known) > 40 else ''}"
            raise wrong("question", f"the unknown {', '.join(map(repr, unknown))}", some, "ask with those")
        return text
