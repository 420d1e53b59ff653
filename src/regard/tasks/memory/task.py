"""A memory network that answers questions about stories, and how it is trained and measured."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.algebra.catalog import Sizes
from regard.algebra.masks import Mask
from regard.layers.hops import Hops
from regard.layers.memory import Memory
from regard.tasks.mechanisms import build_catalog_mechanism
from regard.tasks.memory.config import MemoryModel
from regard.tasks.memory.stories import LONGEST, WORDS
from regard.tasks.tensor_task import Tensors, TensorTask
from regard.training import Goal, Loss


class MemoryOutput(NamedTuple):
    """Scores of the words, and the attention weights of each hop: `(batch, hops, facts)`."""

    logits: Tensor
    weights: Tensor


class MemoryNetwork(nn.Module):
    r"""A key-value memory of facts, asked several times (Sukhbaatar et al. 2015; Miller et al. 2016).

    $$ k_i = \sum_j a_j \circ E w_{ij} + t_i, \qquad v_i = \sum_j c_j \circ E w_{ij}, \qquad
    q = \sum_j b_j \circ E w_j $$

    with $E$ = `words`, the word $w_{ij}$ at position j of fact i, $a, c, b$ = `places`, learned weights of positions,
    and $t$ = `age`, a learned vector for the number of later facts.
    """

    def __init__(self, config: MemoryModel, facts: int) -> None:
        super().__init__()
        size = config.size
        # One table for questions, keys and values, so that at first a word attends to itself. With a table each, some
        # learn to attend to all facts but the right one, and get no further.
        self.words = nn.Embedding(len(WORDS), size, padding_idx=0)
        nn.init.normal_(self.words.weight, std=0.3)
        self.places = nn.Parameter(1 + 0.3 * torch.randn(3, LONGEST, size))
        self.age = nn.Parameter(0.1 * torch.randn(facts, size))
        sizes = Sizes(size, size, size, keys=facts)
        # One matrix for all hops: what a hop learns from questions of one fact also helps those of three.
        update = nn.Linear(size, size, bias=False)
        nn.init.eye_(update.weight)
        mechanism = build_catalog_mechanism(config.score, sizes, config.normalizer)
        self.hops = Hops([update] * config.hops, mechanism=mechanism)
        self.answer = nn.Linear(size, len(WORDS))

    def forward(self, facts: Tensor, question: Tensor) -> MemoryOutput:
        key = (self.words(facts) * self.places[0]).sum(-2) + self.age[: facts.shape[1]]
        value = (self.words(facts) * self.places[1]).sum(-2)
        query = (self.words(question) * self.places[2]).sum(-2)[:, None]
        real = Mask.keep((facts > 0).any(-1)[:, None])
        hopped = self.hops(query, Memory(key, value, real))
        weights = torch.cat([hop.weights.dense() for hop in hopped.hops], dim=1)
        return MemoryOutput(self.answer(hopped.output.squeeze(1)), weights)


class MemoryTask(TensorTask):
    """Learns where people, boxes and things are."""

    goal = Goal("accuracy", "higher")

    def model(self) -> MemoryNetwork:
        return MemoryNetwork(self.config.model, self.sets.validation[0].shape[1])

    def loss(self, model: Any, batch: Tensors) -> Loss:
        facts, question, answer, _ = batch
        return Loss(F.cross_entropy(model(facts, question).logits, answer, reduction="sum"), len(answer))

    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Return how many answers are right, and which share of the needed facts had the largest weight in some hop."""
        facts, question, answer, support = batch
        found = model(facts, question)
        right = float((found.logits.argmax(-1) == answer).sum())
        attended = (found.weights.argmax(-1)[:, :, None] == support[:, None]).any(1)
        pointed = float((attended.sum(-1) / (support >= 0).sum(-1)).sum())
        return {"items": float(len(answer)), "accuracy": 100 * right, "pointed": 100 * pointed}
