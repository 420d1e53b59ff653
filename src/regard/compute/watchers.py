"""Who watches. Attention that is computed tells it to those who asked, in this thread of work and in no other."""

from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from regard.algebra.shapes import Tensor
from regard.compute.weights import Weights


@runtime_checkable
class Watcher(Protocol):
    """Somebody who wants to be told."""

    def on_attention(self, weights: Weights | Tensor) -> None:
        """Attention with these weights was just computed, by whoever called."""


WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("regard_watchers", default=())


def notify_watchers(weights: Weights | Tensor) -> None:
    """Tell whoever watches, each once."""
    for watcher in WATCHERS.get():
        watcher.on_attention(weights)
