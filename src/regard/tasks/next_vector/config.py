"""The configuration of a model of the next vector."""

from dataclasses import dataclass, field
from typing import Literal

from regard.errors import wrong
from regard.models.config import check_positive
from regard.training import Training, configure_cosine_training
from regard.training.settings import check_not_negative, require_steps


@dataclass(frozen=True, slots=True)
class NextVectorData:
    """Sequences of vectors; the last of each is to be predicted from those before it."""

    source: str = "retrieval"  # retrieval, rotation, linear, or a file: .npy or CSV
    length: int | None = None  # vectors in a sequence, the one to predict included; none: 8, of a long file 25
    columns: tuple[str, ...] = ()  # of a CSV file; none: all that hold numbers
    without: tuple[str, ...] = ()  # columns of a CSV file to leave out
    size: int = 8  # numbers in a vector of those that are generated
    items: int = 4000  # sequences that are generated
    noise: float = 0.1  # of those that are generated
    seed: int = 1

    def __post_init__(self) -> None:
        if self.length is not None and self.length < 3:
            raise wrong("length", self.length, "at least 3: two to look at, one to predict", "use 8")
        check_even(self.size, "use 8")
        if self.items < 10:
            raise wrong("items", self.items, "at least 10", "use 4000")
        check_not_negative("noise", self.noise)
        check_not_negative("seed", self.seed)


@dataclass(frozen=True, slots=True)
class NextVectorModel:
    """The seven steps."""

    score: str = "dot"  # a name of the catalog
    normalizer: str = "softmax"  # a name of the catalog
    aggregate: Literal["soft", "argmax", "gumbel", "gumbel-straight"] = "soft"  # how the weights are used: all, or one
    size: int = 32  # of embedding, query and keys

    def __post_init__(self) -> None:
        check_even(self.size, "use 32")


def check_even(size: int, fix: str) -> None:
    """Raise unless a size can be cut into pairs."""
    if size < 2 or size % 2:
        raise wrong("size", size, "an even number above 0", fix)


@dataclass(frozen=True, slots=True)
class NextVectorConfig:
    """The configuration of a model of the next vector."""

    task: Literal["next-vector"] = "next-vector"
    data: NextVectorData = field(default_factory=NextVectorData)
    model: NextVectorModel = field(default_factory=NextVectorModel)
    batch: int = 128
    training: Training = field(
        default_factory=lambda: require_steps(configure_cosine_training(1e-2, 20, epochs=60, keep=1, log=20), 600)
    )

    def __post_init__(self) -> None:
        check_positive("batch", self.batch)


PRESETS = {"seven-steps": NextVectorConfig()}
