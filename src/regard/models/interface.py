"""Encoders and decoders behind one interface: all that a search and a loss know of a model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.algebra.masks import Full, Lengths, Mask
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.weights import Weights

State = TypeVar("State")


class EncoderOutput(NamedTuple):
    """A batch of sources, read.

    `states` and `content` have a vector for each position; positions from `lengths` on are padding. What a reader
    takes away is the content, which is the states where an encoder says nothing else. `summary` is one vector for
    the whole, for decoders to start from.
    """

    states: Float[Tensor, "batch source width"]
    lengths: Int[Tensor, " batch"]
    summary: Float[Tensor, "batch summary"]
    content: Float[Tensor, "batch source content"] | None = None

    @property
    def mask(self) -> Mask:
        """Which positions are real. A batch without padding needs no mask, and kernels are faster without."""
        if not torch.compiler.is_compiling() and bool((self.lengths == self.states.shape[1]).all()):
            return Full()
        return Lengths(self.lengths)


class Encoder(nn.Module, ABC):
    """From sources to what decoders read: `width` numbers for each position, `summary` numbers for the whole."""

    width: int
    summary: int

    @property
    def content(self) -> int:
        """The width of what is taken away."""
        return self.width

    @abstractmethod
    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        """Read a batch whose sources have these lengths; what lies behind them changes nothing."""


@runtime_checkable
class Alignment(Protocol):
    """Where a decoder looked: computed when it is asked for."""

    def dense(self) -> Tensor:
        """One row over the source for each query."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredAlignment:
    """Weights that are there already."""

    weights: Float[Tensor, "*lead source"]

    def dense(self) -> Float[Tensor, "*lead source"]:
        """Themselves."""
        return self.weights


@dataclass(frozen=True, slots=True, eq=False)
class MeanAlignment:
    """Weights of several heads, averaged when they are asked for, and brought to the lead axes `lead`."""

    weights: Weights
    lead: tuple[int, ...]

    def dense(self) -> Float[Tensor, "*lead source"]:
        """The mean over the heads."""
        table = self.weights.dense()
        return table.mean(-3).reshape(*self.lead, table.shape[-1])


@dataclass(frozen=True, slots=True, eq=False)
class StepwiseAlignment:
    """Weights of one step after another, put together when they are asked for."""

    steps: tuple[Alignment, ...]

    @classmethod
    def from_steps(cls, steps: Sequence[Alignment | None]) -> "StepwiseAlignment | None":
        """None where no step looked anywhere."""
        looked = tuple(step for step in steps if step is not None)
        return cls(looked) if looked else None

    def dense(self) -> Float[Tensor, "batch target source"]:
        """All of them."""
        return torch.stack([step.dense() for step in self.steps], dim=1)


class AttentionSample(NamedTuple):
    """How hard attention came to look where it did: the weights before it chose, and the logarithm of the probability
    of its choice, where it was drawn from them."""

    soft_weights: Float[Tensor, "*lead source"]
    log_prob: Float[Tensor, "*lead"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DecoderStep(Generic[State]):
    """One step without the vocabulary: what the output layer is given, the state after it, where it looked."""

    vector: Float[Tensor, "row width"]
    state: State
    weights: Alignment | None


@dataclass(frozen=True, slots=True, eq=False)
class StepLogits(Generic[State]):
    """One step of some hypotheses: scores of the next tokens, the state after it, and where each looked."""

    logits: Float[Tensor, "row vocabulary"]
    state: State
    weights: Alignment | None


class TeacherForcingOutput(NamedTuple):
    """All steps with the right tokens given: a vector for each, `(batch, target, source)` weights, and how a decoder
    that chooses where to look came to them."""

    vectors: Float[Tensor, "batch target width"]
    weights: Alignment | None
    sample: AttentionSample | None = None


class Decoder(nn.Module, ABC, Generic[State]):
    """Says tokens one after another while it reads what an encoder has read.

    The state is a tree of tensors whose first axis has one row for each hypothesis; it is passed in and out, and
    `select` reorders any such tree. `output` turns the vectors of steps into scores of the vocabulary.
    """

    output: nn.Linear

    @abstractmethod
    def begin(self, encoded: EncoderOutput) -> State:
        """Nothing said yet: one row for each source. What depends on the source alone is computed here, once."""

    @abstractmethod
    def advance(self, token: Int[Tensor, " row"], state: State) -> DecoderStep[State]:
        """One step, up to the output layer."""

    def step(self, token: Int[Tensor, " row"], state: State) -> StepLogits[State]:
        """One step: each row is given its last token."""
        taken = self.advance(token, state)
        return StepLogits(self.output(taken.vector), taken.state, taken.weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        """All steps with these tokens given, up to the output layer: by default, one step after another.

        No step sees a later token, so padding needs no mask; where `lengths` are given, the vectors behind them are
        left undefined.
        """
        state, vectors, rows = self.begin(encoded), [], []
        for token in tokens.unbind(1):
            taken = self.advance(token, state)
            state = taken.state
            vectors.append(taken.vector)
            rows.append(taken.weights)
        return TeacherForcingOutput(torch.stack(vectors, dim=1), StepwiseAlignment.from_steps(rows))

    def forward(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Scores of the next token after each of the given ones."""
        logits: Tensor = self.output(self.teacher_force(tokens, encoded).vectors)
        return logits
