"""Names for every part: what `regard list` shows, `--score` takes, and the contract tests run over."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import torch

from regard.algebra import aggregates, biases, masks, normalizers, scores
from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer
from regard.algebra.scores import Score
from regard.errors import find_nearest, wrong

Part = TypeVar("Part")


class Sizes(NamedTuple):
    """What a part may have to know of the tensors that it will meet."""

    query: int
    key: int
    value: int
    lead: tuple[int, ...] = ()
    queries: int = 1
    keys: int = 512

    @property
    def heads(self) -> int | None:
        """The last lead axis."""
        return self.lead[-1] if self.lead else None


SCORES: Mapping[str, Callable[[Sizes], Score]] = {
    "dot": lambda _: scores.Dot(),
    "scaled-dot": lambda _: scores.ScaledDot(),
    "bilinear": lambda s: scores.Bilinear(s.query, s.key),
    "low-rank": lambda s: scores.Bilinear(s.query, s.key, rank=max(1, min(s.query, s.key) // 2)),
    "concat": lambda s: scores.Concat(s.query, query=s.query, key=s.key),
    "additive": lambda s: scores.Additive(s.query, query=s.query, key=s.key, heads=s.heads),
    "location": lambda s: scores.Location(s.query, keys=s.keys),
    "cosine": lambda _: scores.Cosine(temperature=0.1),
    "learned-cosine": lambda s: scores.Cosine.learned(heads=s.heads),
    "gaussian": lambda _: scores.Gaussian(),
    "learned-gaussian": lambda s: scores.Gaussian.learned(heads=s.heads),
    "laplacian": lambda _: scores.Laplacian(),
    "learned-laplacian": lambda s: scores.Laplacian.learned(heads=s.heads),
    "capped": lambda _: scores.Capped(scores.ScaledDot(), cap=30.0),
    "features": lambda _: scores.FeatureDot(),
    "dot+gaussian": lambda _: scores.Dot() + 0.5 * scores.Gaussian(width=0.5),
    "dot+laplacian": lambda _: scores.ScaledDot() + scores.Laplacian(width=0.5),
}

BIASES: Mapping[str, Callable[[Sizes], Bias | None]] = {
    "none": lambda _: None,
    "alibi": lambda s: biases.ALiBi(s.heads or 1),
    "relative": lambda s: biases.Relative(s.heads or 1),
    "prior": lambda s: biases.Prior(torch.linspace(-1, 1, s.keys)),
    "dense": lambda s: biases.Dense(torch.linspace(-1, 1, s.queries * s.keys).view(s.queries, s.keys)),
}

MASKS: Mapping[str, Callable[[Sizes], Mask]] = {
    "full": lambda _: masks.Full(),
    "causal": lambda _: masks.Causal(),
    "window": lambda s: masks.Window(before=max(1, s.keys // 8), after=max(1, s.keys // 16)),
    "causal-window": lambda s: masks.Window(before=max(1, s.keys // 8), after=0),
    "around": lambda s: masks.CenteredWindow(torch.linspace(0, s.keys - 1, s.queries), radius=max(1, s.keys // 8)),
    "lengths": lambda s: masks.Lengths(make_lengths(s)),
    "prefix": lambda s: masks.Prefix(make_lengths(s)),
    "documents": lambda s: make_documents(s),
    "table": lambda s: masks.Mask.keep(make_checkerboard(s)),
    "causal&lengths": lambda s: masks.Causal() & masks.Lengths(make_lengths(s)),
    "window&documents": lambda s: masks.Window(before=max(1, s.keys // 4), after=1) & make_documents(s),
    "not-causal": lambda _: ~masks.Causal(),
    "causal|prefix": lambda s: masks.Causal() | masks.Prefix(make_lengths(s)),
}

NORMALIZERS: Mapping[str, Callable[[Sizes], Normalizer]] = {
    "softmax": lambda _: normalizers.Softmax(),
    "tempered": lambda s: normalizers.Softmax.learned(0.7, heads=s.heads),
    "softmax-plus-one": lambda _: normalizers.SoftmaxPlusOne(),
    "sparsemax": lambda _: normalizers.Sparsemax(),
    "entmax-1.5": lambda _: normalizers.Entmax15(),
    "entmax": lambda s: normalizers.Entmax.learned(1.3, heads=s.heads),
    "sigmoid": lambda _: normalizers.Sigmoid(),
    "row-total": lambda _: normalizers.RowTotal(),
    "local-p": lambda s: normalizers.LocalGaussian(make_centers(s), deviation=max(1.0, s.keys / 8)),
    "monotonic": lambda _: normalizers.Monotonic(),
    "hard-monotonic": lambda _: normalizers.HardMonotonic(),
    "chunkwise": lambda _: normalizers.ChunkwiseMonotonic(width=3),
}

AGGREGATES: Mapping[str, Callable[[], Aggregate]] = {
    "soft": aggregates.Soft,
    "argmax": aggregates.Argmax,
    "gumbel": aggregates.Gumbel,
    "gumbel-straight": aggregates.StraightThroughGumbel,
    "sample": aggregates.Sample,
}

FAMILIES: Mapping[str, Mapping[str, Callable[..., object]]] = {
    "score": SCORES,
    "bias": BIASES,
    "mask": MASKS,
    "normalizer": NORMALIZERS,
    "aggregate": AGGREGATES,
}


def find(family: str, name: str) -> Callable[..., object]:
    """The constructor of that name; a misspelt one is answered with the nearest."""
    known = FAMILIES[family]
    if name not in known:
        raise wrong(family, repr(name), f"one of {', '.join(known)}", f"write {find_nearest(name, known)}")
    return known[name]


def make_lengths(sizes: Sizes) -> torch.Tensor:
    """Lengths from all keys down to none over the first lead axis: padding is real and one sequence is empty."""
    count = sizes.lead[0] if sizes.lead else 1
    lengths = torch.linspace(sizes.keys, 0, count + 1).long()[1:] if count > 1 else torch.tensor([sizes.keys // 2])
    return lengths.view(-1, *(1 for _ in sizes.lead[1:])) if sizes.lead else lengths[0]


def make_documents(sizes: Sizes) -> Mask:
    """Three documents side by side; queries by their share of the way."""
    keys = torch.arange(sizes.keys) * 3 // sizes.keys
    return masks.Documents(keys, torch.arange(sizes.queries) * 3 // sizes.queries)


def make_checkerboard(sizes: Sizes) -> torch.Tensor:
    """Every second pair, and an empty first row."""
    table = (torch.arange(sizes.queries)[:, None] + torch.arange(sizes.keys)) % 2 == 0
    table[0] = False
    return table


def make_centers(sizes: Sizes) -> torch.Tensor:
    """A center for each query, walking along the keys."""
    return torch.linspace(0.3, sizes.keys - 1.2, sizes.queries)
