"""The configuration of a model of the next vector."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.errors import wrong
from regard.models.ranges import CheckedConfig, Count, Natural, NotNegative, at_least
from regard.training import Training, configure_cosine_training
from regard.training.settings import require_steps

SequenceLength = Annotated[int, at_least(3, fix="use 8")]  # two to look at, one to predict


@dataclass(frozen=True, slots=True)
class NextVectorData(CheckedConfig):
    """Sequences of vectors; the last of each is to be predicted from those before it."""

    source: str = "retrieval"  # retrieval, rotation, linear, or a file: .npy or CSV
    length: SequenceLength | None = None  # vectors in a sequence, the last is predicted; none: 8, of a long file 25
    columns: tuple[str, ...] = ()  # of a CSV file; none: all that hold numbers
    without: tuple[str, ...] = ()  # columns of a CSV file to leave out
    size: int = 8  # numbers in a vector of those that are generated
    items: Annotated[int, at_least(10, fix="use 4000")] = 4000  # sequences that are generated
    noise: NotNegative = 0.1  # of those that are generated
    seed: Natural = 1  # of what is generated, or of what is held out

    def check(self) -> None:
        check_even(self.size, "use 8")


@dataclass(frozen=True, slots=True)
class NextVectorModel(CheckedConfig):
    """The seven steps."""

    score: str = "dot"  # a name of the catalog
    normalizer: str = "softmax"  # a name of the catalog
    aggregate: Literal["soft", "argmax", "gumbel", "gumbel-straight"] = "soft"  # how the weights are used: all, or one
    size: int = 32  # of embedding, query and keys

    def check(self) -> None:
        check_even(self.size, "use 32")


def check_even(size: int, fix: str) -> None:
    """Raise unless a size can be cut into pairs."""
    if size < 2 or size % 2:
        raise wrong("size", size, "an even number above 0", fix)


@dataclass(frozen=True, slots=True)
class NextVectorConfig(CheckedConfig):
    """The configuration of a model of the next vector."""

    task: Literal["next-vector"] = "next-vector"
    data: NextVectorData = field(default_factory=NextVectorData)
    model: NextVectorModel = field(default_factory=NextVectorModel)
    batch: Count = 128  # sequences in a batch
    training: Training = field(
        default_factory=lambda: require_steps(configure_cosine_training(1e-2, 20, epochs=60, keep=1, log=20), 600)
    )


PRESETS = {"seven-steps": NextVectorConfig()}
