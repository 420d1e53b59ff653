"""Translating for the page: token by token, with the tree of hypotheses, and what is hidden from the model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from regard.datasets.bounds import most
from regard.datasets.cleaning import clean
from regard.errors import wrong
from regard.models.search import ROOT, Beam, Branch, Sampling, watch
from regard.tasks.data import END, UNKNOWN
from regard.tasks.data.marks import MARKS
from regard.tasks.translation import Search, Translator
from regard.tasks.translation.looking import spread, without
from regard.web.bodies import Fields
from regard.web.events import Event
from regard.web.limits import Limits
from regard.web.work import Ticket

Masking = Literal["attention", "input"]
DIGITS = 6  # of a weight on its way to the page


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and the places of its tokens that are masked: hidden from attention, or unknown to the model."""

    text: str
    masked: tuple[int, ...] = ()
    masking: Masking = "attention"

    @classmethod
    def of(cls, fields: Fields, limits: Limits) -> "Source":
        text = clean(fields.text("text", limits.characters))
        if not text:
            raise wrong("text", "nothing but blanks", "some words", "write a sentence")
        masked = tuple(sorted(set(fields.places("masked", limits.tokens, limits.tokens))))
        return cls(text, masked, fields.choice("masking", ("attention", "input"), "attention"))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Question:
    """A translation as it is asked for. A temperature of 0 searches; above, one translation is drawn."""

    source: Source
    beam: int = 5
    length: float = 1.0
    temperature: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, fields: Fields, limits: Limits) -> "Question":
        return cls(
            Source.of(fields, limits),
            fields.whole("beam", 1, limits.beam, min(5, limits.beam)),
            fields.number("length", 0.0, float(most("request", "length")), 1.0),
            fields.number("temperature", 0.0, float(most("request", "temperature")), 0.0),
            fields.whole("seed", 0, most("request", "seed"), 0),
        )

    @property
    def plan(self) -> Beam | Sampling | None:
        if self.temperature >= 0.01:
            return Sampling(self.temperature, seed=self.seed)
        if self.beam == 1:
            return None
        return Search(self.beam, self.beam, self.length).plan


class Numbered(NamedTuple):
    """A text in numbers, END behind it, and the places that decoders cannot see."""

    row: list[int]
    hidden: list[int]


def numbered(translator: Translator, source: Source, most: int) -> Numbered:
    """The source as the model is given it. Of a text that is too long, the beginning."""
    longest = min(most, translator.config.model.longest)
    row = [*translator.vocabularies.source.encode(source.text)[: longest - 1], END]
    masked = [place for place in source.masked if place < len(row) - 1]
    if source.masking == "input":
        return Numbered([UNKNOWN if place in masked else number for place, number in enumerate(row)], [])
    return Numbered(row, masked)


def answer(translator: Translator, question: Question, limits: Limits, ticket: Ticket) -> Iterator[Event]:
    """The events of one translation: the source, each step of the search, and what was found."""
    reading = numbered(translator, question.source, limits.tokens)
    with torch.inference_mode():
        encoded = translator.model.encode(torch.tensor([reading.row]), torch.tensor([len(reading.row)]))
    vocabularies = translator.vocabularies
    unknown = vocabularies.source.unknown(question.source.text)
    yield Event("source", {"tokens": vocabularies.source.tokens(reading.row), "unknown": unknown})
    longest = min(limits.tokens, translator.config.model.longest)
    room = min(2 * len(reading.row) + 30, longest - 1)
    branches: dict[int, Branch] = {}
    for grown in watch(translator.model.decoder, without(encoded, reading.hidden), MARKS, room, plan=question.plan):
        ticket.check()
        branches |= {branch.number: branch for branch in grown}
        yield Event("step", {"branches": [shown(branch, reading, translator) for branch in grown]})
    yield Event("done", {"hypotheses": complete(branches, question.beam, translator)})


def shown(branch: Branch, reading: Numbered, translator: Translator) -> dict[str, Any]:
    """A branch for the page."""
    found = branch._asdict() | {"word": translator.vocabularies.target.tokens([branch.token])[0]}
    if branch.looked is not None:
        weights = spread(branch.looked.float(), len(reading.row), reading.hidden)
        found["looked"] = [round(weight, DIGITS) for weight in weights.tolist()]
    return found


def complete(branches: dict[int, Branch], most: int, translator: Translator) -> list[dict[str, Any]]:
    """The branches that ended, the best first, each with its path from the root."""
    ended = [(branch.score, branch) for branch in branches.values() if branch.score is not None]
    found = []
    for score, branch in sorted(ended, key=lambda pair: -pair[0])[:most]:
        path = [branch.number]
        while branches[path[0]].parent != ROOT:
            path.insert(0, branches[path[0]].parent)
        tokens = [branches[number].token for number in path[:-1]]
        text = translator.vocabularies.target.decode(tokens)
        found.append({"text": text, "score": score, "log_prob": branch.log_prob, "path": path, "tokens": tokens})
    return found
