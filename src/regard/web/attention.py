"""All attention of a model while it reads a text and says a given translation of it, as a recording."""

from regard.datasets.text import clean
from regard.errors import wrong
from regard.inspect.recording import Recording
from regard.tasks.data.vocabulary import SPECIAL, UNKNOWN
from regard.tasks.translation import Translator
from regard.tasks.translation.attention import record_translation
from regard.web.bodies import Fields
from regard.web.limits import Limits
from regard.web.translation import SourceText, encode_source


def read_target(fields: Fields, translator: Translator, limits: Limits) -> list[int]:
    """The translation to be said: tokens of this model, or a text that it cuts into its own."""
    vocabulary, longest = translator.vocabularies.target, min(limits.tokens, translator.config.model.longest) - 1
    if "target" in fields.values:
        return vocabulary.encode(clean(fields.take_text("target", limits.characters)))[:longest]
    tokens = fields.take_indices("tokens", len(vocabulary), longest)
    if any(token < len(SPECIAL) and token != UNKNOWN for token in tokens):
        raise wrong("tokens", "padding, a beginning or an end", "words of the vocabulary", "send those of an answer")
    return tokens


def record_attention(translator: Translator, source: SourceText, tokens: list[int], limits: Limits) -> Recording:
    """Where each layer looked, with the tokens beside it."""
    row, hidden = encode_source(translator, source, limits.tokens)
    return record_translation(translator, row, tokens, hidden=hidden, limit=limits.kept)
