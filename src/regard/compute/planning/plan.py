"""A plan is a value: the backend and the reasons."""

from typing import Literal, NamedTuple, get_args

import torch

Backend = Literal["eager", "sdpa", "few_queries", "local", "linear", "stream", "rows", "flex"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)


class PlanStep(NamedTuple):
    """What becomes of one piece, and why."""

    piece: str
    becomes: str
    because: str


class Plan(NamedTuple):
    """Which backend computes an attention, with the reasons."""

    backend: Backend
    because: str
    steps: tuple[PlanStep, ...]
    precision: torch.dtype | None = None  # what it is computed in, if that is not the dtype of the tensors

    def explain(self) -> str:
        """The plan in words, a line for each piece.

        >>> print(Plan("sdpa", "it was asked for", (PlanStep("score", "itself", "it is a dot product"),)).explain())
        backend sdpa, because it was asked for
          score: itself, because it is a dot product
        """
        lines = [f"  {step.piece}: {step.becomes}, because {step.because}" for step in self.steps]
        return "\n".join([f"backend {self.backend}, because {self.because}", *lines])
