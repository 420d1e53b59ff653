"""The configuration of a memory network."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.models.ranges import CheckedConfig, Count, Natural, between
from regard.training import Training, configure_cosine_training

People = Annotated[int, between(3, 6, fix="use 4")]
Moves = Annotated[int, between(1, 4, fix="use 2")]


@dataclass(frozen=True, slots=True)
class MemoryData(CheckedConfig):
    """Stories, new ones in each epoch, with questions that need one, two or three of their facts."""

    source: Literal["stories", "kinds"] = "stories"  # kinds: the twenty kinds of questions of Weston et al. 2015
    kinds: tuple[int, ...] = ()  # of questions, by number; none: all
    stories: Count = 1000  # to learn from, of each kind of question; the same in each epoch
    people: People = 4  # in a story; a box goes with all but one, and a thing lies in all boxes but one
    moves: Moves = 2  # times that each of them goes somewhere, at most; the last counts
    items: Count = 12800  # stories in an epoch
    held_out: Count = 600  # stories of each set that is tested on
    seed: Natural = 1  # of what is generated, or of what is held out


@dataclass(frozen=True, slots=True)
class MemoryModel(CheckedConfig):
    """A memory of facts, read several times."""

    score: str = "dot"  # a name of the catalog; none: without attention, all facts count alike
    normalizer: str = "softmax-plus-one"  # a name of the catalog; with this one, a hop may attend to nothing
    size: Count = 48  # of the vectors of facts and questions
    hops: Count = 3  # times that the memory is asked
    positions: Literal["learned", "fixed", "none"] = "learned"  # weights of words by position; fixed: of the paper
    time: bool = True  # whether a fact knows how many came after it
    writing: Literal["all", "gated"] = "all"  # gated: how much of a fact enters the memory is learned


@dataclass(frozen=True, slots=True)
class MemoryConfig(CheckedConfig):
    """The configuration of a memory network."""

    task: Literal["memory"] = "memory"
    data: MemoryData = field(default_factory=MemoryData)
    model: MemoryModel = field(default_factory=MemoryModel)
    batch: Count = 128  # stories in a batch
    training: Training = field(default_factory=lambda: configure_cosine_training(1e-2, 100, epochs=20, keep=1, log=50))


PRESETS = {
    "three-hops": MemoryConfig(),
    "one-hop": MemoryConfig(model=MemoryModel(hops=1)),
    "no-attention": MemoryConfig(model=MemoryModel("none", "softmax")),
    "question-kinds": MemoryConfig(
        data=MemoryData(source="kinds"),
        model=MemoryModel(normalizer="softmax"),
        batch=64,
        training=configure_cosine_training(5e-3, 100, epochs=20, keep=1, log=50),
    ),
}
