"""Translate for the page: token by token, with the tree of hypotheses, masked tokens and recorded attention."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from regard.datasets.bounds import get_bound
from regard.datasets.text import clean
from regard.errors import wrong
from regard.inspect.display.fields import Fields
from regard.inspect.recording import Recording
from regard.models.search import ROOT, BeamOptions, Branch, SamplingOptions, iterate_search
from regard.tasks.data import END, UNKNOWN
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.data.vocabulary import SPECIAL
from regard.tasks.translation import TranslationSearchOptions, Translator
from regard.tasks.translation.attention import hide_positions, record_translation, restore_hidden_positions
from regard.web.events import Event
from regard.web.limits import Limits
from regard.web.workers import Ticket

Masking = Literal["attention", "input"]
DIGITS = 6  # of a weight on its way to the page


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text, and the positions of its tokens that are masked: hidden from attention, or unknown to the model."""

    text: str
    masked: tuple[int, ...] = ()
    masking: Masking = "attention"

    @classmethod
    def from_fields(cls, fields: Fields, limits: Limits) -> "SourceText":
        """Take the source of a request."""
        text = clean(fields.take_text("text", limits.characters))
        if not text:
            raise wrong("text", "nothing but blanks", "some words", "write a sentence")
        masked = tuple(sorted(set(fields.take_indices("masked", limits.tokens, limits.tokens))))
        return cls(text, masked, fields.take_choice("masking", ("attention", "input"), "attention"))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """A request for a translation. A temperature of 0 searches; above, one translation is sampled."""

    source: SourceText
    beam: int = 5
    length: float = 1.0
    temperature: float = 0.0
    seed: int = 0

    @classmethod
    def from_fields(cls, fields: Fields, limits: Limits) -> "TranslationRequest":
        """Take the fields of a request."""
        return cls(
            SourceText.from_fields(fields, limits),
            fields.take_integer("beam", 1, limits.beam, min(5, limits.beam)),
            fields.take_number("length", 0.0, float(get_bound("request", "length")), 1.0),
            fields.take_number("temperature", 0.0, float(get_bound("request", "temperature")), 0.0),
            fields.take_integer("seed", 0, get_bound("request", "seed"), 0),
        )

    @property
    def plan(self) -> BeamOptions | SamplingOptions | None:
        """How to search: by sampling, with a beam, or greedily (None)."""
        if self.temperature >= 0.01:
            return SamplingOptions(self.temperature, seed=self.seed)
        if self.beam == 1:
            return None
        return TranslationSearchOptions(self.beam, self.beam, self.length).beam_options


class EncodedSource(NamedTuple):
    """The token ids of a text, END behind them, and the positions that decoders cannot see."""

    row: list[int]
    hidden: list[int]
    cut: int = 0  # tokens behind those that the model can take


def encode_source(translator: Translator, source: SourceText, most: int) -> EncodedSource:
    """Return the token ids of a source as the model gets them; a text that is too long is cut."""
    longest = min(most, translator.config.model.longest)
    tokens = translator.vocabularies.source.encode(source.text)
    row, cut = [*tokens[: longest - 1], END], max(0, len(tokens) - longest + 1)
    masked = [position for position in source.masked if position < len(row) - 1]
    if source.masking == "input":
        return EncodedSource([UNKNOWN if position in masked else token for position, token in enumerate(row)], [], cut)
    return EncodedSource(row, masked, cut)


def stream_translation(
    translator: Translator, question: TranslationRequest, limits: Limits, ticket: Ticket
) -> Iterator[Event]:
    """Yield the events of one translation: the source, each step of the search, and the hypotheses."""
    source = encode_source(translator, question.source, limits.tokens)
    with torch.inference_mode():
        encoded = translator.model.encode(torch.tensor([source.row]), torch.tensor([len(source.row)]))
    vocabularies = translator.vocabularies
    unknown = vocabularies.source.find_unknown(question.source.text)
    tokens = vocabularies.source.get_tokens(source.row)
    yield Event("source", {"tokens": tokens, "unknown": unknown, "cut": source.cut})
    longest = min(limits.tokens, translator.config.model.longest)
    room = min(2 * len(source.row) + 30, longest - 1)
    branches: dict[int, Branch] = {}
    for grown in iterate_search(
        translator.model.decoder, hide_positions(encoded, source.hidden), SPECIAL_TOKENS, room, options=question.plan
    ):
        ticket.check()
        branches |= {branch.number: branch for branch in grown}
        yield Event("step", {"branches": [describe_branch(branch, source, translator) for branch in grown]})
    yield Event("done", {"hypotheses": rank_hypotheses(branches, question.beam, translator), "room": room})


def describe_branch(branch: Branch, source: EncodedSource, translator: Translator) -> dict[str, Any]:
    """Return a branch as the page reads it: `weights` are those over the source."""
    attention = None
    if branch.weights is not None:
        weights = restore_hidden_positions(branch.weights.float(), len(source.row), source.hidden)
        attention = [round(weight, DIGITS) for weight in weights.tolist()]
    return {
        "number": branch.number,
        "parent": branch.parent,
        "token": branch.token,
        "word": translator.vocabularies.target.get_tokens([branch.token])[0],
        "log_prob": branch.log_prob,
        "weights": attention,
        "score": branch.score,
    }


def rank_hypotheses(branches: dict[int, Branch], most: int, translator: Translator) -> list[dict[str, Any]]:
    """Return the branches that ended, the best first, each with its path from the root."""
    ended = [(branch.score, branch) for branch in branches.values() if branch.score is not None]
    hypotheses = []
    for score, branch in sorted(ended, key=lambda pair: -pair[0])[:most]:
        path = [branch.number]
        while branches[path[0]].parent != ROOT:
            path.insert(0, branches[path[0]].parent)
        tokens = [branches[number].token for number in path[:-1]]
        text = translator.vocabularies.target.decode(tokens)
        hypotheses.append({"text": text, "score": score, "log_prob": branch.log_prob, "path": path, "tokens": tokens})
    return hypotheses


def read_target(fields: Fields, translator: Translator, limits: Limits) -> list[int]:
    """Take the translation whose attention is wanted: token ids of this model, or a text that it encodes."""
    vocabulary, longest = translator.vocabularies.target, min(limits.tokens, translator.config.model.longest) - 1
    if "target" in fields.values:
        return vocabulary.encode(clean(fields.take_text("target", limits.characters)))[:longest]
    tokens = fields.take_indices("tokens", len(vocabulary), longest)
    if any(token < len(SPECIAL) and token != UNKNOWN for token in tokens):
        raise wrong("tokens", "padding, a beginning or an end", "words of the vocabulary", "send those of an answer")
    return tokens


def record_attention(translator: Translator, source: SourceText, tokens: list[int], limits: Limits) -> Recording:
    """Return the attention of each layer while the model produces a given translation, with tokens as labels."""
    row, hidden, _ = encode_source(translator, source, limits.tokens)
    return record_translation(translator, row, tokens, hidden=hidden, limit=limits.kept)
