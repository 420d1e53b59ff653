"""All attention of a model while it reads a text and says a given translation of it, as a recording."""

from fnmatch import fnmatchcase

import torch
from torch import Tensor

from regard.errors import wrong
from regard.observing import observe
from regard.recording import Recording, Whole
from regard.tasks.data import BEGIN, END
from regard.tasks.data.vocabulary import SPECIAL, UNKNOWN
from regard.tasks.translation import Translator
from regard.web.bodies import Fields
from regard.web.limits import Limits
from regard.web.translation import Read, Source, read, spread


def wanted(fields: Fields, translator: Translator, limits: Limits) -> list[int]:
    """The translation to be said: tokens of this model, or a text that it cuts into its own."""
    vocabulary, longest = translator.vocabularies.target, min(limits.tokens, translator.config.model.longest) - 1
    if "target" in fields.values:
        return vocabulary.encode(fields.text("target", limits.characters))[:longest]
    tokens = fields.places("tokens", len(vocabulary), longest)
    if any(token < len(SPECIAL) and token != UNKNOWN for token in tokens):
        raise wrong("tokens", "padding, a beginning or an end", "words of the vocabulary", "send those of an answer")
    return tokens


def recorded(translator: Translator, source: Source, tokens: list[int], limits: Limits) -> Recording:
    """Where each layer looked, with the tokens beside it."""
    with torch.inference_mode(), observe(translator.model, limit=limits.kept) as observed:
        reading = read(translator, source, limits.tokens)
        translator.model.decoder.teach(torch.tensor([[BEGIN, *tokens]]), reading.encoded)
    if not observed:
        fix = "choose a run of another model, such as bahdanau"
        raise wrong("attention", "a model that looks at nothing", "one that looks at its source", fix)
    return labelled(translator, reading, tokens, joined(observed))


def joined(observed: Recording) -> dict[str, Tensor]:
    """The weights of each site; those of a decoder that says one token at a time, one row after another."""
    calls: dict[str, list[Tensor]] = {}
    for name, seen in observed.items():
        calls.setdefault(name.partition("#")[0], []).append(seen.dense().float())
    return {name: torch.cat(tables, dim=1) for name, tables in calls.items()}


def labelled(translator: Translator, reading: Read, tokens: list[int], weights: dict[str, Tensor]) -> Recording:
    """With what stands beside each site: the source, what was said, or what was to be said next."""
    vocabularies, size = translator.vocabularies, len(reading.row)
    read_tokens = vocabularies.source.tokens(reading.row)
    given, said = (vocabularies.target.tokens(row) for row in ([BEGIN, *tokens], [*tokens, END]))
    found = Recording()
    for name, table in weights.items():
        if name.startswith("encoder."):
            rows, columns = read_tokens, read_tokens
        elif fnmatchcase(name, "decoder.blocks.*.attention"):
            rows, columns = given, given
        else:
            rows, columns, table = said, read_tokens, spread(table, size, reading.seen)
        found.label(rows, columns, sites=found.add(name, Whole(table)))
    return found
