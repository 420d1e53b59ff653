"""The attention of every layer and head of a translator for a given translation."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.errors import InputError
from regard.inspect.observe import observe
from regard.inspect.recording import AttentionMap, DenseMap, Recording
from regard.inspect.recording.origin import join_queries
from regard.models import EncoderOutput
from regard.tasks.data import BEGIN, END
from regard.tasks.prediction import no_attention_error
from regard.tasks.translation.translator import Translator


def record_translation(
    translator: Translator,
    source: Sequence[int],
    translation: Sequence[int],
    *,
    hidden: Sequence[int] = (),
    limit: int = 2**28,
) -> Recording:
    """Record all attention while the model translates `source`, which ends with END, as `translation`.

    Queries and keys are kept too, so that `explain` says what made a weight.

    Rows are the tokens of the translation, columns those of the source; in self-attention both are one text's. The
    decoder cannot see the `hidden` positions of the source, and the recording takes at most `limit` bytes.
    """
    model = translator.model
    device = next(model.parameters()).device
    row = torch.tensor([list(source)], device=device)
    with torch.inference_mode(), observe(model, limit=limit, vectors=True) as seen:
        encoded = hide_positions(model.encode(row, torch.tensor([len(source)], device=device)), hidden)
        model.decoder.teacher_force(torch.tensor([[BEGIN, *translation]], device=device), encoded)
    if not seen:
        raise missing_attention_error()
    return label_recording(merge_steps(seen), translator, source, translation, hidden)


def missing_attention_error() -> InputError:
    """Return the error for a translator without attention."""
    return no_attention_error("model", "its source", "bahdanau")


def hide_positions(encoded: EncoderOutput, hidden: Sequence[int]) -> EncoderOutput:
    """Return the encoder's output without the hidden positions."""
    if not hidden:
        return encoded
    seen = torch.tensor(list_visible_positions(encoded.states.shape[1], hidden), device=encoded.states.device)
    content = None if encoded.content is None else encoded.content[:, seen]
    return EncoderOutput(encoded.states[:, seen], encoded.lengths - len(hidden), encoded.summary, content)


def restore_hidden_positions(weights: Tensor, size: int, hidden: Sequence[int]) -> Tensor:
    """Return weights over all keys, which are 0 at the hidden ones."""
    if weights.shape[-1] == size:
        return weights
    places = torch.tensor(list_visible_positions(size, hidden), device=weights.device)
    return weights.new_zeros(*weights.shape[:-1], size).index_copy(-1, places, weights)


def restore_hidden_keys(one: AttentionMap, size: int, hidden: Sequence[int]) -> DenseMap:
    """Return an attention over all keys: those that were hidden have no weight, and a score of −∞."""
    weights = restore_hidden_positions(one.dense(), size, hidden)
    origin = one.origin
    if origin is None or origin.key.shape[1] == size:
        return DenseMap(weights, origin)
    seen = torch.tensor(list_visible_positions(size, hidden))
    key = origin.key.new_zeros(origin.key.shape[0], size, origin.key.shape[2]).index_copy(1, seen, origin.key)
    known = origin.bias if origin.bias is not None else origin.key.new_zeros(1, 1, len(seen))
    bias = known.new_full((*known.shape[:2], size), float("-inf")).index_copy(2, seen, known.expand(-1, -1, len(seen)))
    norm = None if origin.norm is None else restore_hidden_positions(origin.norm, size, hidden)
    return DenseMap(weights, replace(origin, key=key, bias=bias, norm=norm))


def list_visible_positions(size: int, hidden: Sequence[int]) -> list[int]:
    """Return the positions below `size` that are not hidden."""
    return [place for place in range(size) if place not in hidden]


def label_recording(
    seen: Recording, translator: Translator, source: Sequence[int], translation: Sequence[int], hidden: Sequence[int]
) -> Recording:
    """Return the recording with readable names and with tokens as labels."""
    read = translator.vocabularies.source.get_tokens(source)
    answers, before = (
        translator.vocabularies.target.get_tokens(row) for row in ([*translation, END], [BEGIN, *translation])
    )
    named = Recording(notes=seen.notes, metadata=seen.metadata)
    for name, one in seen.items():
        role = getattr(translator.model.get_submodule(name), "role", None)
        site = name_site(name, role)
        if name.startswith("encoder"):
            named.label(read, read, sites=named.add(site, one))
        elif role == "self":
            named.label(before, before, sites=named.add(site, one))
        else:
            whole = restore_hidden_keys(one, len(source), hidden) if hidden else one
            named.label(answers, read, sites=named.add(site, whole))
    return named


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
