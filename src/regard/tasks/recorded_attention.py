"""Record the attention of a prediction together with the vectors that made it, so that `explain` can say what did."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from regard.inspect.observe import observe
from regard.inspect.recording import AttentionMap, DenseMap, Recording
from regard.inspect.recording.origin import join_queries
from regard.models import EncoderDecoder, EncoderOutput
from regard.tasks.data import BEGIN

LIMIT = 2**28  # bytes of a recording


def record_decoding(
    model: EncoderDecoder[Any], encode: Callable[[], EncoderOutput], tokens: Sequence[int], *, limit: int = LIMIT
) -> Recording:
    """Record all attention while the model encodes, and writes each of `tokens` and what follows them."""
    device = next(model.parameters()).device
    with torch.inference_mode(), observe(model, limit=limit, vectors=True) as seen:
        model.decoder.teacher_force(torch.tensor([[BEGIN, *tokens]], device=device), encode())
    return merge_steps(seen)


def record_source_attention(
    model: EncoderDecoder[Any],
    encode: Callable[[], EncoderOutput],
    tokens: Sequence[int],
    labels: tuple[Sequence[str], Sequence[str]],
) -> Recording | None:
    """Return the attention of a decoder to its source, with labels of rows and columns; None if it has none.

    `tokens` are all but the last that it writes.
    """
    seen = record_decoding(model, encode, tokens)
    named = Recording(notes=seen.notes)
    for name, one in seen.items():
        role = getattr(model.get_submodule(name), "role", None)
        if name.startswith("decoder") and role != "self":
            named.label(*labels, sites=named.add(name_site(name, role), one))
    return named or None


def name_site(site: str, role: str | None) -> str:
    """Return a name for people: the side, the layer if there are several, and whether a decoder attends to itself.

    >>> name_site("encoder.blocks.0.attention", "self"), name_site("decoder.blocks.0.source", "cross")
    ('encoder 0', 'decoder 0')
    >>> name_site("decoder.blocks.1.attention", "self"), name_site("decoder.attention.scope.attention", "cross")
    ('decoder 1, itself', 'decoder')
    """
    side, *path = site.split(".")
    layer = next((f" {step}" for step in path if step.isdigit()), "")
    return side + layer + (", itself" if side == "decoder" and role == "self" else "")


def merge_steps(seen: Recording) -> Recording:
    """Return one map for each site: a recurrent decoder records a row at each step."""
    steps: dict[str, list[AttentionMap]] = {}
    for name, one in seen.items():
        steps.setdefault(name.partition("#")[0], []).append(one)
    tables = {name: rows[0] if len(rows) == 1 else join_rows(rows) for name, rows in steps.items()}
    return Recording(tables, notes=seen.notes)


def join_rows(rows: Sequence[AttentionMap]) -> DenseMap:
    """Return the rows of all steps as one map, with what they were computed from if every step has it."""
    origins = [row.origin for row in rows]
    known = [origin for origin in origins if origin is not None]
    origin = join_queries(known) if len(known) == len(rows) else None
    return DenseMap(torch.cat([row.dense() for row in rows], dim=1), origin)


def select_keys(one: AttentionMap, places: Sequence[int]) -> DenseMap:
    """Return the weights of the keys at some places, in their order; −1: a hidden key, without a weight."""
    chosen = torch.tensor(places)
    weights = one.dense()[..., chosen.clamp_min(0)].masked_fill(chosen < 0, 0.0)
    return DenseMap(weights, None if one.origin is None else one.origin.select_keys(places))


def find_maps(seen: Recording, beginning: str) -> list[AttentionMap]:
    """Return the maps of sites whose names begin so, in the order in which they attended."""
    return [one for name, one in seen.items() if name.startswith(beginning)]


def label_map(one: AttentionMap, queries: Sequence[str], keys: Sequence[str]) -> Recording:
    """Return a recording of one attention, with labels of its rows and columns."""
    recording = Recording({"attention": one})
    recording.label(queries, keys)
    return recording
