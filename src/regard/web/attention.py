"""All attention of a model while it reads a text and says a given translation of it, as a recording."""

import torch
from torch import Tensor

from regard.errors import wrong
from regard.recording import Recording
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
    reading = read(translator, source, limits.tokens)
    with torch.inference_mode():
        taught = translator.model.decoder.teach(torch.tensor([[BEGIN, *tokens]]), reading.encoded)
    if taught.weights is None:
        fix = "choose a run of another model, such as bahdanau"
        raise wrong("attention", "a model that looks at nothing", "one that looks at its source", fix)
    weights = spread(taught.weights.dense()[0].float(), len(reading.row), reading.seen)
    return labelled(translator, reading, tokens, weights)


def labelled(translator: Translator, reading: Read, tokens: list[int], weights: Tensor) -> Recording:
    vocabularies = translator.vocabularies
    said = vocabularies.target.tokens([*tokens, END])
    return Recording.of({"decoder": weights}, queries=said, keys=vocabularies.source.tokens(reading.row))
