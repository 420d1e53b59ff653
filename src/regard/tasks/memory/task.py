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
from regard.tasks.memory.story_format import StoryFormat
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
    and $t$ = `age`, a learned vector for the number of later facts. With fixed positions all three are
    $l_{kj} = (1 - j/J) - (k/d)(1 - 2j/J)$ for word j of J (Sukhbaatar et al. 2015, §4.1). With gated writing a fact
    enters the memory as $\sigma(g^\top k_i)\, v_i$, $g$ = `gate`.
    """

    def __init__(self, config: MemoryModel, form: StoryFormat) -> None:
        super().__init__()
        size, self.positions = config.size, config.positions
        # One table for questions, keys and values, so that at first a word attends to itself. With a table each, some
        # learn to attend to all facts but the right one, and get no further.
        self.words = nn.Embedding(len(form.words), size, padding_idx=0)
        nn.init.normal_(self.words.weight, std=0.3)
        learned = 1 + 0.3 * torch.randn(3, form.longest, size)
        self.places = nn.Parameter(learned) if config.positions == "learned" else None
        self.age = nn.Parameter(0.1 * torch.randn(form.facts, size)) if config.time else None
        self.gate = nn.Linear(size, 1) if config.writing == "gated" else None
        sizes, alike = Sizes(size, size, size, keys=form.facts), config.score == "none"
        # One matrix for all hops: what a hop learns from questions of one fact also helps those of three.
        update = nn.Linear(size, size, bias=False)
        nn.init.eye_(update.weight)
        mechanism = build_catalog_mechanism("dot" if alike else config.score, sizes, config.normalizer)
        mechanism = mechanism.replace(score=0.0 * mechanism.score) if alike else mechanism
        self.hops = Hops([update] * config.hops, mechanism=mechanism)
        self.answer = nn.Linear(size, len(form.words))

    def forward(self, facts: Tensor, question: Tensor) -> MemoryOutput:
        key, value, query = (self.embed(ids, use) for use, ids in enumerate((facts, facts, question)))
        key = key if self.age is None else key + self.age[: facts.shape[1]]
        value = value if self.gate is None else self.gate(key).sigmoid() * value
        real = Mask.keep((facts > 0).any(-1)[:, None])
        hopped = self.hops(query[:, None], Memory(key, value, real))
        weights = torch.cat([hop.weights.dense() for hop in hopped.hops], dim=1)
        return MemoryOutput(self.answer(hopped.output.squeeze(1)), weights)

    def embed(self, ids: Tensor, use: int) -> Tensor:
        """Return the vectors of sentences: as keys, as values or as questions."""
        words = self.words(ids)
        if self.places is not None:
            words = words * self.places[use]
        elif self.positions == "fixed":
            words = words * weigh_positions((ids > 0).sum(-1), *words.shape[-2:])
        found: Tensor = words.sum(-2)
        return found


def weigh_positions(counts: Tensor, longest: int, size: int) -> Tensor:
    """Return the weights of each word and coordinate, in sentences of so many words (Sukhbaatar et al. 2015, §4.1)."""
    share = torch.arange(1, longest + 1, device=counts.device) / counts.clamp_min(1)[..., None]
    across = torch.arange(1, size + 1, device=counts.device) / size
    return (1 - share)[..., None] - across * (1 - 2 * share)[..., None]


class MemoryTask(TensorTask):
    """Learns to answer questions about stories, such as where people, boxes and things are."""

    units = (
        "accuracy: percent of the answers; pointed: percent of the needed facts that had the largest weight in a hop"
    )

    goal = Goal("accuracy", "higher")

    def model(self) -> MemoryNetwork:
        return MemoryNetwork(self.config.model, self.sets.form)

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
