"""The configuration of a memory network."""

from dataclasses import dataclass, field
from typing import Literal

from regard.errors import wrong
from regard.models.config import check_positive
from regard.training import StopCriteria, Training, configure_short_training
from regard.training.settings import check_not_negative


@dataclass(frozen=True, slots=True)
class MemoryData:
    """Stories, new ones in each epoch, with questions that need one, two or three of their facts."""

    people: int = 4  # in a story; a box goes with all but one, and a thing lies in all boxes but one
    moves: int = 2  # times that each of them goes somewhere, at most; the last counts
    items: int = 12800  # stories in an epoch
    held_out: int = 600  # stories of each set that is tested on
    seed: int = 1

    def __post_init__(self) -> None:
        if not 3 <= self.people <= 6:
            raise wrong("people", self.people, "3 to 6", "use 4")
        if not 1 <= self.moves <= 4:
            raise wrong("moves", self.moves, "1 to 4", "use 2")
        for name in ("items", "held_out"):
            check_positive(name, getattr(self, name))
        check_not_negative("seed", self.seed)


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """A memory of facts, read several times."""

    score: str = "dot"  # a name of the catalog
    normalizer: str = "softmax-plus-one"  # a name of the catalog; with this one, a hop may attend to nothing
    size: int = 48
    hops: int = 3

    def __post_init__(self) -> None:
        for name in ("size", "hops"):
            check_positive(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """The configuration of a memory network."""

    task: Literal["memory"] = "memory"
    data: MemoryData = field(default_factory=MemoryData)
    model: MemoryModel = field(default_factory=MemoryModel)
    batch: int = 128
    training: Training = field(
        default_factory=lambda: configure_short_training(
            "memory", rate=1e-2, warmup=100, stop=StopCriteria(epochs=20), log=50
        )
    )

    def __post_init__(self) -> None:
        check_positive("batch", self.batch)


PRESETS = {"three-hops": MemoryConfig(), "one-hop": MemoryConfig(model=MemoryModel(hops=1))}
