"""One relevant item among many: a query resembles one key, and all other keys say another label together.

A model is trained on few items and tested on many. What all others say together counts for as much as their weights, so
that the answer is right as long as the relevant item has the larger part of the weight.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard import attend
from regard.algebra.normalizers import Entmax, Normalizer, Softmax, Sparsemax
from regard.algebra.scores import Cosine, ScaledDot, Score
from regard.tasks.known_comparisons import ITEMS, SHARPNESS
from regard.tasks.small_training import TEST_SEED, train_on_batches

LABELS, WIDTH, NOISE = 8, 32, 0.5  # labels, numbers of a key, and the deviation of the noise of a query
SHORTEST, LONGEST = 4, 16  # items in training
STEPS, TESTED = 1000, 200  # updates, and queries of a test
TEMPERATURE = 0.2  # of the cosine: no two scores differ by more than 10
NORMALIZERS: dict[str, type[Normalizer]] = {"softmax": Softmax, "entmax": Entmax, "sparsemax": Sparsemax}


class Crowd(NamedTuple):
    """Queries, keys and values, the label of the right key, and where it stands."""

    query: Tensor
    key: Tensor
    value: Tensor
    label: Tensor
    place: Tensor


def draw_crowd(count: int, items: int, generator: torch.Generator) -> Crowd:
    """Draw keys of one norm; one of them has a label of its own, all others have one that says nothing about it."""
    key = nn.functional.normalize(torch.randn(count, items, WIDTH, generator=generator), dim=-1) * WIDTH**0.5
    place = torch.randint(items, (count,), generator=generator)
    each = torch.arange(count)
    query = key[each, place] + NOISE * torch.randn(count, WIDTH, generator=generator)
    own, others = torch.randint(LABELS, (2, count), generator=generator)
    label = others[:, None].repeat(1, items)
    label[each, place] = own
    return Crowd(query, key, nn.functional.one_hot(label, LABELS).to(key.dtype), own, place)


def draw_batch(generator: torch.Generator) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Draw 32 queries with one number of items that was trained on."""
    items = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=generator))
    crowd = draw_crowd(32, items, generator)
    return (crowd.query, crowd.key, crowd.value), crowd.label


class CrowdReader(nn.Module):
    """Projections to queries and keys, attention, and a linear layer to the labels."""

    def __init__(self, normalizer: str, *, bounded: bool) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.score: Score = Cosine(TEMPERATURE) if bounded else ScaledDot()
        self.normalizer = NORMALIZERS[normalizer]()
        self.label = nn.Linear(LABELS, LABELS)

    def read(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of all labels, and the weights of all items."""
        found = attend(self.query(query)[:, None], self.key(key), value, score=self.score, normalizer=self.normalizer)
        return self.label(found.output[:, 0]), found.weights.dense()[:, 0]

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self.read(query, key, value)[0]


@torch.no_grad()
def measure_sharpness(model: CrowdReader, items: int) -> list[float]:
    """Return, in percent: right labels, the weight at the right item, and the entropy of the weights of ln(items)."""
    crowd = draw_crowd(TESTED, items, torch.Generator().manual_seed(TEST_SEED))
    said, weights = model.read(crowd.query, crowd.key, crowd.value)
    right = (said.argmax(-1) == crowd.label).double().mean()
    found = weights[torch.arange(TESTED), crowd.place].mean()
    entropy = torch.special.entr(weights).sum(-1).mean() / torch.tensor(float(items)).log()
    return [100 * float(each) for each in (right, found, entropy)]


def measure_normalizer(kind: str, seed: int, steps: int = STEPS) -> list[float]:
    """Train a normalizer with a bounded score or a learned one, and return each quantity at each length."""
    score, _, normalizer = kind.partition(" ")
    torch.manual_seed(seed)
    model = CrowdReader(normalizer, bounded=score == "bounded")
    train_on_batches(model, draw_batch, seed, steps, rate=3e-3)
    measured = [measure_sharpness(model, items) for items in ITEMS]
    return [row[number] for number in range(len(SHARPNESS)) for row in measured]
