"""Translating texts by CTranslate2: called directly, and as `regard translate --engine ct2` calls it.

Both read one model. Its weights are random, but the end is the more probable the nearer a target comes to its wanted
length: its vector is that of the position there, which the stream carries from the words to the output.
"""

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.claim import Contender
from benchmarks.contenders import translators
from benchmarks.contenders.beam_search import SearchProblem
from benchmarks.contenders.text import Text
from regard.export import CTranslate2Translator, export
from regard.layers.positions import sinusoids
from regard.models.kernels.prepacked import Precision
from regard.tasks.data import END, Vocabularies
from regard.tasks.data.vocabulary import SPECIAL, TokenVocabulary
from regard.tasks.translation import TranslationConfig, TranslationSearchOptions, Translator
from regard.tasks.translation.config import TranslationVocabulary

PULL = 1.0  # of the end towards where it is wanted
SHY = -6 / 128  # of its bias for each unit of the size, against ending elsewhere
FAINT = 0.3  # words, so that positions are not lost among them
NEVER = -1e4
FOLDER = tempfile.TemporaryDirectory()


def ours(task: SearchProblem, precision: Precision = "float32") -> Contender:
    """Our translator by CTranslate2: texts in numbers, the search, scores by our rule, and words again."""
    search = TranslationSearchOptions(
        task.width, length_penalty=task.length, stop="full"
    )  # as CTranslate2 does it, with nothing to make up for
    fast, texts = export_once(task, precision), list_sentences(task)
    return Contender(lambda: count_tokens([one.best[0].tokens for one in fast.translate(texts, search)]))


def direct(task: SearchProblem, precision: Precision = "float32") -> Contender:
    """CTranslate2's own `translate_batch`, given the words."""
    engine, rows = export_once(task, precision).engine, [[*text.split(), SPECIAL[END]] for text in list_sentences(task)]
    how = {"beam_size": task.width, "length_penalty": task.length}
    return Contender(lambda: count_tokens([one.hypotheses[0] for one in engine.translate_batch(rows, **how)]))


def list_sentences(task: SearchProblem) -> list[str]:
    """Return the sources, a word for each number."""
    text = Text(task.batch)
    rows = zip(text.source.tolist(), text.source_lengths.tolist(), strict=True)
    return [" ".join(f"w{number}" for number in row[: length - 1]) for row, length in rows]


def count_tokens(hypotheses: list[list[str]]) -> Tensor:
    """Return how many tokens each has."""
    return torch.tensor([float(len(tokens)) for tokens in hypotheses])


@functools.cache
def export_once(task: SearchProblem, precision: Precision) -> CTranslate2Translator:
    """Our translator by CTranslate2, exported once for each precision."""
    made, folder = build_translator(task), Path(FOLDER.name) / f"{task.shape.vocabulary}-{task.steps}-{precision}"
    export(made, folder, "ct2")
    return CTranslate2Translator(made, folder, precision)


def build_translator(task: SearchProblem) -> Translator:
    """Return a model that ends, with its vocabulary."""
    torch.manual_seed(1)
    model = translators.ours(task.shape).eval()
    with torch.no_grad():
        places = sinusoids(2 * task.steps, task.shape.size)
        model.decoder.output.weight.mul_(FAINT)
        model.decoder.output.weight[END] = PULL * (places[task.steps] - places.mean(0))
        model.decoder.output.bias[END] = SHY * task.shape.size
        model.decoder.output.bias[:END] = NEVER
    words = TokenVocabulary([f"w{number}" for number in range(len(SPECIAL), task.shape.vocabulary)], "blank")
    config = TranslationConfig(vocabulary=TranslationVocabulary(joint=True))
    return Translator(replace(config, model=translators.build_config(task.shape)), Vocabularies(words, words), model)
