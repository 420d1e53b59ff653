"""The attention of every layer and head of a translator for a given translation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import InputError
from regard.inspect.recording import AttentionMap, Recording
from regard.models import EncoderOutput
from regard.tasks.data import BEGIN, END
from regard.tasks.prediction import no_attention_error
from regard.tasks.recorded_attention import name_site, record_decoding, select_keys
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
    row, lengths = torch.tensor([list(source)], device=device), torch.tensor([len(source)], device=device)
    seen = record_decoding(model, lambda: hide_positions(model.encode(row, lengths), hidden), translation, limit=limit)
    if not seen:
        raise missing_attention_error()
    return label_recording(seen, translator, source, translation, hidden)


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


def restore_hidden_keys(one: AttentionMap, size: int, hidden: Sequence[int]) -> AttentionMap:
    """Return an attention over all keys: those that were hidden have no weight, and a score of −∞."""
    if one.keys == size:
        return one
    seen = list_visible_positions(size, hidden)
    return select_keys(one, [seen.index(place) if place in seen else -1 for place in range(size)])


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
