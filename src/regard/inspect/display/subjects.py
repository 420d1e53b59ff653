"""What can be shown, as the chapters of a report: recordings, single attentions, weights, predictions, tensors."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from regard.algebra.shapes import Tensor
from regard.compute.attend import AttentionResult
from regard.compute.weights import Weights
from regard.errors import wrong, wrong_kind
from regard.inspect.draw.chapters import Chapter
from regard.inspect.observe.arguments import select_item, upcast_half
from regard.inspect.observe.calls import SoftmaxCall
from regard.inspect.observe.own_attention import build_handle_call
from regard.inspect.recording import AttentionMap, DenseMap, Recording

KINDS = "a recording, an attention, weights, an attention result, a prediction or tensors of weights"
DENSE_WEIGHTS = 2**24  # of a handle, that are written out to be shown; more are kept as factors
LARGEST = 8  # weights of each query that a sketch keeps
SITE = "attention"  # the name of one that has none


@runtime_checkable
class Showable(Protocol):
    """What knows its own chapter, such as a prediction."""

    def build_chapter(self) -> Chapter | None:
        """Return what a page shows of it, or none if there are no weights."""


def build_chapter(
    subject: object, queries: Sequence[str] | None = None, keys: Sequence[str] | None = None, item: int = 0
) -> Chapter:
    """Return the chapter of anything that can be shown. Tokens label every site whose axes have as many positions."""
    chapter = subject if isinstance(subject, Chapter) else None
    if chapter is None and isinstance(subject, Showable):
        chapter = subject.build_chapter()
        if chapter is None:
            raise wrong("view", "a prediction without attention", "one with weights", "ask a model that attends")
    if chapter is None:
        chapter = Chapter("", build_recording(subject, item))
    if queries is not None or keys is not None:
        label_recording(chapter.recording, queries, keys)
    return chapter


def build_recording(subject: object, item: int = 0) -> Recording:
    """Return the recording of anything but a prediction."""
    if isinstance(subject, Recording):
        return subject.select("*")  # labels are added to the copy
    if isinstance(subject, AttentionMap):
        return Recording({SITE: subject})
    if isinstance(subject, AttentionResult):
        subject = subject.weights
    if isinstance(subject, Weights):
        return Recording({SITE: record_weights(subject, item)})
    if isinstance(subject, list | tuple) and subject and all(hasattr(part, "shape") for part in subject):
        return Recording({f"layer {number}": DenseMap(select_table(part, item)) for number, part in enumerate(subject)})
    if hasattr(subject, "shape"):
        return Recording({SITE: DenseMap(select_table(subject, item))})
    raise wrong_kind("view", f"a {type(subject).__name__}", KINDS, "give what observe or attend returned")


def record_weights(weights: Weights, item: int = 0) -> AttentionMap:
    """Return the attention behind a handle: all weights if they are few, else factors or statistics."""
    heads = min(1, len(weights.shape) - 2)  # of a single axis, heads or a batch, all can be shown
    with torch.no_grad():
        call = build_handle_call(weights, heads, item)
        if call.shape[0] * call.shape[1] * call.shape[2] <= DENSE_WEIGHTS:
            return call.to_dense()
        return call.to_factored(LARGEST) if isinstance(call, SoftmaxCall) else call.to_sketch(LARGEST)


def select_table(weights: Any, item: int) -> Tensor:
    """Return the weights (heads, queries, keys) of one item of a batch."""
    table = torch.as_tensor(weights).detach().cpu()
    if table.dim() < 2:
        raise wrong("weights", f"{table.dim()} axes", "(…, queries, keys)", "give a table of weights")
    if table.dim() == 2:
        table = table[None]
    table = select_item(table, table.shape[:-3], item)
    return upcast_half(table if table.is_floating_point() else table.float())


def label_recording(recording: Recording, queries: Sequence[str] | None, keys: Sequence[str] | None) -> None:
    """Label the sites whose axes are as long as the tokens are many; queries are the keys too if no keys are given."""
    rows = list(queries if queries is not None else keys or ())
    columns = list(keys if keys is not None else rows)
    known = {len(rows): rows, len(columns): columns}
    labelled = 0
    for name, attention in recording.items():
        across = rows if attention.queries == len(rows) else known.get(attention.queries)
        down = columns if attention.keys == len(columns) else known.get(attention.keys)
        if across is not None or down is not None:
            recording.label(across, down, sites=_escape(name))
            labelled += 1
    if not labelled:
        sizes = ", ".join(sorted({f"{one.queries} × {one.keys}" for one in recording.values()}))
        got = f"{len(rows)} and {len(columns)} tokens"
        raise wrong("tokens", got, f"as many as some of {sizes} positions", "give one for each position")


def _escape(name: str) -> str:
    """Return a glob that matches just this name."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
