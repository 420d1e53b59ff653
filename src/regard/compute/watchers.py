"""Watchers receive the weights of all attention that is computed in their context (thread or task), and in no other."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Tensor
from regard.compute.weights import Weights


@runtime_checkable
class Watcher(Protocol):
    """An object that receives weights."""

    def on_attention(self, weights: Weights | Tensor, call: AttentionCall | None = None) -> None:
        """Receive the weights of attention that was just computed, and what they were computed from if known."""


WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("regard_watchers", default=())


def notify_watchers(weights: Weights | Tensor, call: AttentionCall | None = None) -> None:
    """Pass the weights to every watcher; a handle knows its `call` itself."""
    for watcher in WATCHERS.get():
        watcher.on_attention(weights, call)


@contextmanager
def pause_watchers() -> Iterator[None]:
    """Show watchers nothing of what is computed inside: the whole of it is shown to them afterwards."""
    if not WATCHERS.get():
        yield
        return
    token = WATCHERS.set(())
    try:
        yield
    finally:
        WATCHERS.reset(token)
