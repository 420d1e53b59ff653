"""The parts of a claim: cases, contenders, bounds, and curves over the length."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor

Problem = TypeVar("Problem")
OURS = "regard"
FASTEST = "the fastest peer"


class Contender(NamedTuple):
    """A forward pass, and the tensors whose gradients are computed if the backward pass is measured too."""

    forward: Callable[[], Tensor]
    leaves: tuple[Tensor, ...] = ()


Build = Callable[[Problem], Contender]


@dataclass(frozen=True, slots=True)
class Bound:
    """What must hold: their time is `least` times ours or more; or ours is `most` times theirs or less."""

    against: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Case(Generic[Problem]):
    """Contenders for the same problem. Those in `peers` count for the fastest, those in `also` are shown beside them.

    `tiny` is the same problem in milliseconds, for tests and for warming up. `limit` says what keeps ours from being
    faster, without figures: those are of a contender in `also` that does only that.
    """

    name: str
    problem: Problem
    tiny: Problem
    ours: Build[Problem]
    peers: Mapping[str, Build[Problem]]
    bounds: tuple[Bound, ...]
    also: Mapping[str, Build[Problem]] = field(default_factory=dict)
    backward: bool = False
    limit: str = ""

    def list_builds(self) -> dict[str, Build[Problem]]:
        """Return every contender by name, ours first."""
        return {OURS: self.ours, **self.peers, **self.also}


@dataclass(frozen=True, slots=True)
class TimeCase(Case[Problem]):
    """Times of ours and of peers, in one process."""


@dataclass(frozen=True, slots=True)
class MemoryCase(Case[Problem]):
    """Peak memory of ours and of peers, each in a process of its own.

    A peer in `limited` is run with at most so many megabytes, because it might take all that the machine has.
    """

    limited: Mapping[str, int] = field(default_factory=dict)
    most: float | None = None  # megabytes of ours


@dataclass(frozen=True, slots=True)
class Curve:
    """One backend against the length: what it runs, how far it goes, and whether it has a backward pass."""

    build: Build[int]
    longest: int = 32_768
    backward: bool = True


@dataclass(frozen=True, slots=True)
class Growth:
    """Time and memory against the length, for every backend."""

    curves: Mapping[str, Curve]
    shortest: int = 256


@dataclass(frozen=True, slots=True)
class Claim:
    """One or more cases under a title, measured in one process with this `environment`."""

    title: str
    cases: tuple[TimeCase[Any] | MemoryCase[Any], ...] = ()
    growth: Growth | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
