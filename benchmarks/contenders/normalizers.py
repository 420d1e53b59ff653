"""Sparse normalizers on a table of scores: ours, the entmax package's, and torch's softmax."""

import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import regard
from benchmarks.claim import Build, Contender
from benchmarks.contenders.tensors import draw_normal
from regard.algebra.pairs import Pairs


@dataclass(frozen=True, slots=True)
class ScoreSizes:
    """batch × heads × queries × keys."""

    batch: int
    heads: int
    queries: int
    keys: int


def draw(sizes: ScoreSizes) -> Tensor:
    """Draw the scores."""
    return draw_normal(sizes.batch, sizes.heads, sizes.queries, sizes.keys, seed=1)


def ours(normalizer: regard.Normalizer, *learned: Tensor) -> Build[ScoreSizes]:
    """One of our normalizers, all keys allowed, and what is learned beside the scores."""

    def build(sizes: ScoreSizes) -> Contender:
        scores, pairs = draw(sizes), Pairs(sizes.queries, sizes.keys)
        allowed = regard.Full().allows(pairs)
        return Contender(lambda: normalizer(scores, allowed, pairs), (scores, *learned))

    return build


def package(function: str, *learned: Tensor, **options: Any) -> Build[ScoreSizes]:
    """A function of the entmax package; what is learned has one number for each head."""

    def build(sizes: ScoreSizes) -> Contender:
        run = getattr(importlib.import_module("entmax"), function)
        scores = draw(sizes)

        def forward() -> Tensor:
            normalized: Tensor = run(scores, *(number[:, None, None] for number in learned), dim=-1, **options)
            return normalized

        return Contender(forward, (scores, *learned))

    return build


def softmax(sizes: ScoreSizes) -> Contender:
    """torch's softmax, which gives no zeros."""
    scores = draw(sizes)
    return Contender(lambda: torch.softmax(scores, dim=-1), (scores,))


def copy_scores(sizes: ScoreSizes) -> Contender:
    """The scores times one: read once, written once, and the same for their gradient. No normalizer takes less."""
    scores = draw(sizes)
    return Contender(lambda: scores * 1.0, (scores,))
