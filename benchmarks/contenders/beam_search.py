"""Translating with a beam, from the numbers of the sources to those of the best targets.

All models have the same sizes and random weights, so that no sentence would end where it should: each is made to end
after as many tokens, by what its library has for that. Every search takes as many steps, with the same length penalty.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.claim import Contender
from benchmarks.contenders import translators
from benchmarks.contenders.peer_modules import borrow
from benchmarks.contenders.text import BEGIN, END, PADDING, Batch, Text
from benchmarks.contenders.translators import OpenVocabulary, Shape
from regard.models.kernels.prepacked import Precision, prepack
from regard.models.search import BeamOptions, HypothesisScorer, SpecialTokens, beam_search

NEVER = -1e9  # a bias for what is not to be said
ALONE = "the vocabulary's matrix alone, in bare torch"
LIMIT = (
    "the product of every hypothesis with the vocabulary's matrix, which every contender pays at each step and nobody"
    " can leave out: all scores count in the probability of one."
)


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """A model, the sentences of a batch, and how many tokens each is translated to."""

    shape: Shape
    batch: Batch
    steps: int
    width: int = 5
    length: float = 1.0  # the penalty's exponent


def build_search(model: Any, find: Callable[[], Any]) -> Contender:
    """Return the search of a model that is not trained any more, as numbers: a row for each sentence."""
    model.eval()

    def forward() -> Tensor:
        return torch.as_tensor(find())

    return Contender(forward, tuple(parameter for parameter in model.parameters() if parameter.requires_grad))


def ours(task: SearchProblem, precision: Precision = "float32") -> Contender:
    """Our search. It has no least length: the end is made improbable, and is said where nothing else may be."""
    text, model = Text(task.batch), translators.ours(task.shape).eval()
    with torch.no_grad():
        model.decoder.output.bias[END] = NEVER
    prepack(model, precision)  # as `regard translate` does
    plan, marks = (
        BeamOptions(task.width, scoring=HypothesisScorer(length_penalty=task.length)),
        SpecialTokens(BEGIN, END, (PADDING, BEGIN)),
    )

    def find() -> list[tuple[int, ...]]:
        encoded = model.encode(text.source, text.source_lengths)
        found = beam_search(model.decoder, encoded, marks, task.steps - 1, options=plan)
        return [(*own[0].tokens, END) for own in found]

    return build_search(model, find)


def joeynmt(task: SearchProblem) -> Contender:
    """JoeyNMT's `search`."""
    text, model = Text(task.batch), translators.joeynmt(task.shape)
    batch, search = translators.build_joeynmt_batch(text), borrow("joeynmt.search").search
    steps = {"max_output_length": task.steps, "min_output_length": task.steps}
    return build_search(model, lambda: search(model, batch, beam_size=task.width, beam_alpha=task.length, **steps)[0])


def opennmt(task: SearchProblem) -> Contender:
    """OpenNMT-py's `Translator`."""
    text, model = Text(task.batch), translators.opennmt(task.shape)
    words = OpenVocabulary(task.shape.vocabulary)
    package = borrow("onmt.translate")
    translator = package.Translator(
        model,
        {"src": words, "tgt": words, "decoder_start_token": "<s>"},
        beam_size=task.width,
        min_length=task.steps,
        max_length=task.steps,
        max_length_ratio=0,
        global_scorer=package.GNMTGlobalScorer(task.length, 0.0, "wu", "none"),
    )
    batch = {"src": text.source[..., None], "srclen": text.source_lengths}

    def find() -> Tensor:
        return torch.stack([own[0] for own in translator.translate_batch(batch, False)["predictions"]])

    return build_search(model, find)


def marian(task: SearchProblem) -> Contender:
    """transformers' `generate` with Marian."""
    text, model = Text(task.batch), translators.marian(task.shape)
    steps = {"min_new_tokens": task.steps, "max_new_tokens": task.steps}
    how = {"num_beams": task.width, "length_penalty": task.length, "do_sample": False, "early_stopping": False}
    mask = (text.source != PADDING).long()
    return build_search(model, lambda: model.generate(text.source, attention_mask=mask, **steps, **how)[:, 1:])


def vocabulary_product(task: SearchProblem) -> Contender:
    """What no search can leave out: the scores of all tokens for every hypothesis, at each step."""
    rows = len(Text(task.batch).source) * task.width
    states, output = torch.randn(rows, task.shape.size), torch.nn.Linear(task.shape.size, task.shape.vocabulary)

    def find() -> Tensor:
        made = states
        for _ in range(task.steps):
            made = output(states)
        return made

    return build_search(output, find)
