"""Translating for the page: token by token, with the tree of hypotheses, and what is hidden from the model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from regard.datasets.bounds import get_bound
from regard.datasets.text import clean
from regard.errors import wrong
from regard.models.search import ROOT, BeamOptions, Branch, SamplingOptions, iterate_search
from regard.tasks.data import END, UNKNOWN
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.translation import TranslationSearchOptions, Translator
from regard.tasks.translation.attention import hide_positions, restore_hidden_positions
from regard.web.bodies import Fields
from regard.web.events import Event
from regard.web.limits import Limits
from regard.web.workers import Ticket

Masking = Literal["attention", "input"]
DIGITS = 6  # of a weight on its way to the page


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text, and the places of its tokens that are masked: hidden from attention, or unknown to the model."""

    text: str
    masked: tuple[int, ...] = ()
    masking: Masking = "attention"

    @classmethod
    def from_fields(cls, fields: Fields, limits: Limits) -> "SourceText":
        text = clean(fields.take_text("text", limits.characters))
        if not text:
            raise wrong("text", "nothing but blanks", "some words", "write a sentence")
        masked = tuple(sorted(set(fields.take_indices("masked", limits.tokens, limits.tokens))))
        return cls(text, masked, fields.take_choice("masking", ("attention", "input"), "attention"))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """A translation as it is asked for. A temperature of 0 searches; above, one translation is drawn."""

    source: SourceText
    beam: int = 5
    length: float = 1.0
    temperature: float = 0.0
    seed: int = 0

    @classmethod
    def from_fields(cls, fields: Fields, limits: Limits) -> "TranslationRequest":
        return cls(
            SourceText.from_fields(fields, limits),
            fields.take_integer("beam", 1, limits.beam, min(5, limits.beam)),
            fields.take_number("length", 0.0, float(get_bound("request", "length")), 1.0),
            fields.take_number("temperature", 0.0, float(get_bound("request", "temperature")), 0.0),
            fields.take_integer("seed", 0, get_bound("request", "seed"), 0),
        )

    @property
    def plan(self) -> BeamOptions | SamplingOptions | None:
        if self.temperature >= 0.01:
            return SamplingOptions(self.temperature, seed=self.seed)
        if self.beam == 1:
            return None
        return TranslationSearchOptions(self.beam, self.beam, self.length).beam_options


class EncodedSource(NamedTuple):
    """A text in numbers, END behind it, and the places that decoders cannot see."""

    row: list[int]
    hidden: list[int]


def encode_source(translator: Translator, source: SourceText, most: int) -> EncodedSource:
    """The source as the model is given it. Of a text that is too long, the beginning."""
    longest = min(most, translator.config.model.longest)
    row = [*translator.vocabularies.source.encode(source.text)[: longest - 1], END]
    masked = [place for place in source.masked if place < len(row) - 1]
    if source.masking == "input":
        return EncodedSource([UNKNOWN if place in masked else number for place, number in enumerate(row)], [])
    return EncodedSource(row, masked)


def stream_translation(
    translator: Translator, question: TranslationRequest, limits: Limits, ticket: Ticket
) -> Iterator[Event]:
    """The events of one translation: the source, each step of the search, and what was found."""
    reading = encode_source(translator, question.source, limits.tokens)
    with torch.inference_mode():
        encoded = translator.model.encode(torch.tensor([reading.row]), torch.tensor([len(reading.row)]))
    vocabularies = translator.vocabularies
    unknown = vocabularies.source.find_unknown(question.source.text)
    yield Event("source", {"tokens": vocabularies.source.get_tokens(reading.row), "unknown": unknown})
    longest = min(limits.tokens, translator.config.model.longest)
    room = min(2 * len(reading.row) + 30, longest - 1)
    branches: dict[int, Branch] = {}
    for grown in iterate_search(
        translator.model.decoder, hide_positions(encoded, reading.hidden), SPECIAL_TOKENS, room, options=question.plan
    ):
        ticket.check()
        branches |= {branch.number: branch for branch in grown}
        yield Event("step", {"branches": [describe_branch(branch, reading, translator) for branch in grown]})
    yield Event("done", {"hypotheses": rank_hypotheses(branches, question.beam, translator)})


def describe_branch(branch: Branch, reading: EncodedSource, translator: Translator) -> dict[str, Any]:
    """A branch for the page."""
    found = branch._asdict() | {"word": translator.vocabularies.target.get_tokens([branch.token])[0]}
    if branch.weights is not None:
        weights = restore_hidden_positions(branch.weights.float(), len(reading.row), reading.hidden)
        found["looked"] = [round(weight, DIGITS) for weight in weights.tolist()]
    return found


def rank_hypotheses(branches: dict[int, Branch], most: int, translator: Translator) -> list[dict[str, Any]]:
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
