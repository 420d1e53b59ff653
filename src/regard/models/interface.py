"""The interface of encoders and decoders: all that a search and a loss know of a model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.algebra.masks import Full, Lengths, Mask
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.weights import Weights
from regard.errors import wrong
from regard.models.exported_state import ExportedState, StateTensor

State = TypeVar("State")


class EncoderOutput(NamedTuple):
    """A batch of encoded sources.

    `states` and `content` have a vector for each position; positions from `lengths` on are padding. Keys are made from
    the states and values from the content (None: from the states). `summary` is one vector for the whole source, which
    decoders start from.
    """

    states: Float[Tensor, "batch source width"]
    lengths: Int[Tensor, " batch"]
    summary: Float[Tensor, "batch summary"]
    content: Float[Tensor, "batch source content"] | None = None

    @property
    def mask(self) -> Mask:
        """The padding mask."""
        return build_padding_mask(self.lengths, self.states.shape[1])


def build_padding_mask(lengths: Int[Tensor, " batch"], longest: int) -> Mask:
    """Return the mask of positions that are not padding: a batch without padding needs none, and is faster so."""
    if not torch.compiler.is_compiling() and bool((lengths == longest).all()):
        return Full()
    return Lengths(lengths)


def mean_pool(
    states: Float[Tensor, "batch source width"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch width"]:
    """Return the mean over the positions that are not padding; zeros if there are none.

    >>> mean_pool(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))
    tensor([[2.]])
    """
    real = torch.arange(states.shape[1], device=lengths.device) < lengths[:, None]
    total = torch.where(real[..., None], states, 0.0).sum(1)
    return total / lengths.clamp_min(1)[:, None].to(states.dtype)


class Encoder(nn.Module, ABC):
    """Encodes sources: `width` numbers for each position, `summary` numbers for the whole."""

    width: int
    summary: int

    @property
    def content(self) -> int:
        """The width of the content, which values are made from."""
        return self.width

    @abstractmethod
    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        """Encode a batch of sources of these lengths; padding changes nothing."""


@runtime_checkable
class Alignment(Protocol):
    """Attention weights of a decoder over the source, computed when they are needed."""

    def dense(self) -> Tensor:
        """Return one row over the source for each query."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredAlignment:
    """Weights that are computed already."""

    weights: Float[Tensor, "*lead source"]

    def dense(self) -> Float[Tensor, "*lead source"]:
        return self.weights


@dataclass(frozen=True, slots=True, eq=False)
class MeanAlignment:
    """The mean over the heads of weights, with the lead axes `lead`."""

    weights: Weights
    lead: tuple[int, ...]

    def dense(self) -> Float[Tensor, "*lead source"]:
        table = self.weights.dense()
        return table.mean(-3).reshape(*self.lead, table.shape[-1])


def stack_steps(steps: Sequence[Tensor]) -> Tensor:
    """Return what each step computed as `(batch, step, …)`."""
    return torch.stack(list(steps), dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class StepwiseAlignment:
    """Weights of one step after another, stacked when they are needed."""

    steps: tuple[Alignment, ...]
    stack: Callable[[Sequence[Tensor]], Tensor] = stack_steps

    @classmethod
    def from_steps(
        cls, steps: Sequence[Alignment | None], stack: Callable[[Sequence[Tensor]], Tensor] = stack_steps
    ) -> "StepwiseAlignment | None":
        """Return the alignment of these steps; None if no step has weights."""
        aligned = tuple(step for step in steps if step is not None)
        return cls(aligned, stack) if aligned else None

    def dense(self) -> Float[Tensor, "batch target source"]:
        return self.stack([step.dense() for step in self.steps])


class AttentionSample(NamedTuple):
    """The weights that hard attention chose from, and the log-probability of its choice if it was drawn."""

    soft_weights: Float[Tensor, "*lead source"]
    log_prob: Float[Tensor, "*lead"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DecoderStep(Generic[State]):
    """One step before the output layer: the vector that it is given, the state after the step, and the weights."""

    vector: Float[Tensor, "row width"]
    state: State
    weights: Alignment | None


@dataclass(frozen=True, slots=True, eq=False)
class StepLogits(Generic[State]):
    """One step of some hypotheses: scores of the next tokens, the state after the step, and the weights."""

    logits: Float[Tensor, "row vocabulary"]
    state: State
    weights: Alignment | None


class TeacherForcingOutput(NamedTuple):
    """All steps with teacher forcing: a vector for each, weights `(batch, target, source)`, and what hard attention
    sampled."""

    vectors: Float[Tensor, "batch target width"]
    weights: Alignment | None
    sample: AttentionSample | None = None


class Decoder(nn.Module, ABC, Generic[State]):
    """Predicts tokens one after another while it attends to an encoded source.

    The state is a tree of tensors whose first axis has one row for each hypothesis; it is passed in and out, and
    `select` reorders any such tree. `output` turns the vectors of steps into scores of the vocabulary. A decoder that
    can be exported defines `export_source`, `export_state` and `assemble`.
    """

    output: nn.Linear

    @abstractmethod
    def begin(self, encoded: EncoderOutput) -> State:
        """Return the state before the first step, one row for each source; the source is projected here, once."""

    @abstractmethod
    def advance(self, token: Int[Tensor, " row"], state: State) -> DecoderStep[State]:
        """Take one step with the last token of each row, up to the output layer."""

    def step(self, token: Int[Tensor, " row"], state: State) -> StepLogits[State]:
        """Take one step with the last token of each row."""
        step = self.advance(token, state)
        return StepLogits(self.output(step.vector), step.state, step.weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        """Take all steps with these tokens given, up to the output layer: by default, one step after another.

        No step sees a later token, so padding needs no mask; vectors from `lengths` on are undefined.
        """
        return run_steps(self.advance, tokens, self.begin(encoded))

    def forward(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return the scores of the next token after each of the given ones."""
        logits: Tensor = self.output(self.teacher_force(tokens, encoded).vectors)
        return logits

    def export_begin(self, encoded: EncoderOutput) -> ExportedState:
        """Return the state before the first step as named tensors."""
        state = self.begin(encoded)
        return ExportedState(
            self.export_source(state, encoded), self.export_state(state, torch.zeros_like(encoded.lengths))
        )

    def export_source(self, state: State, encoded: EncoderOutput) -> list[StateTensor]:
        """Return the tensors of a state that no step changes; raise if this decoder cannot be exported."""
        expected = "a recurrent, Transformer or convolutional decoder"
        raise wrong("decoder", type(self).__name__, expected, "export it as safetensors")

    def export_state(self, state: State, steps: Int[Tensor, " row"]) -> list[StateTensor]:
        """Return the tensors of a state after so many steps that each step changes."""
        raise NotImplementedError

    def assemble(self, tensors: Mapping[str, Tensor]) -> State:
        """Return the state that `export_source` and `export_state` took apart."""
        raise NotImplementedError


def run_steps(
    advance: Callable[[Tensor, State], DecoderStep[State]], inputs: Tensor, state: State
) -> TeacherForcingOutput:
    """Take one step after another with the inputs along the second axis."""
    vectors, weights = [], []
    for given in inputs.unbind(1):
        step = advance(given, state)
        state = step.state
        vectors.append(step.vector)
        weights.append(step.weights)
    return TeacherForcingOutput(stack_steps(vectors), StepwiseAlignment.from_steps(weights))
