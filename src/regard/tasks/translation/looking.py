"""Where every layer and head of a translator looks while it says a given translation."""

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import InputError
from regard.inspect.observe import observe
from regard.inspect.recording import Recording, Seen, Whole
from regard.models import Encoded
from regard.tasks.data import BEGIN, END
from regard.tasks.predicting import nowhere
from regard.tasks.translation.translator import Translator

BLOCK = re.compile(r"(encoder|decoder)\.(?:blocks|stages)\.(\d+)\.(attention|source)")


def looked(
    translator: Translator,
    source: Sequence[int],
    said: Sequence[int],
    *,
    hidden: Sequence[int] = (),
    limit: int = 2**28,
) -> Recording:
    """All attention while the model reads `source`, END behind it, and is made to say `said` and END.

    Rows are the tokens that are said, columns those of the source; where a text looks at itself, both are its own. The
    decoder cannot see the `hidden` places of the source, and the recording takes at most `limit` bytes.
    """
    model = translator.model
    device = next(model.parameters()).device
    row = torch.tensor([list(source)], device=device)
    with torch.inference_mode(), observe(model, limit=limit) as seen:
        encoded = without(model.encode(row, torch.tensor([len(source)], device=device)), hidden)
        model.decoder.teach(torch.tensor([[BEGIN, *said]], device=device), encoded)
    if not seen:
        raise unseen()
    return labelled(in_one(seen), translator, source, said, hidden)


def unseen() -> InputError:
    """What is said where somebody wants to see the attention of a translator that has none."""
    return nowhere("model", "its source", "bahdanau")


def without(encoded: Encoded, hidden: Sequence[int]) -> Encoded:
    """What is left to look at: the hidden states were read with the others, and cannot be found."""
    if not hidden:
        return encoded
    seen = torch.tensor(apart_from(encoded.states.shape[1], hidden), device=encoded.states.device)
    content = None if encoded.content is None else encoded.content[:, seen]
    return Encoded(encoded.states[:, seen], encoded.lengths - len(hidden), encoded.summary, content)


def spread(looked: Tensor, size: int, hidden: Sequence[int]) -> Tensor:
    """Weights over all keys, 0 where nobody could look."""
    if looked.shape[-1] == size:
        return looked
    places = torch.tensor(apart_from(size, hidden), device=looked.device)
    return looked.new_zeros(*looked.shape[:-1], size).index_copy(-1, places, looked)


def apart_from(size: int, hidden: Sequence[int]) -> list[int]:
    return [place for place in range(size) if place not in hidden]


def labelled(
    seen: Recording, translator: Translator, source: Sequence[int], said: Sequence[int], hidden: Sequence[int]
) -> Recording:
    """The same with names for people and the tokens beside it."""
    read = translator.vocabularies.source.tokens(source)
    answers, before = (translator.vocabularies.target.tokens(row) for row in ([*said, END], [BEGIN, *said]))
    named = Recording(notes=seen.notes, metadata=seen.metadata)
    for name, one in seen.items():
        if name.startswith("encoder"):
            named.label(read, read, sites=named.add(called(name), one))
        elif own_past(name):
            named.label(before, before, sites=named.add(called(name), one))
        else:
            whole = Whole(spread(one.dense(), len(source), hidden)) if hidden else one
            named.label(answers, read, sites=named.add(called(name), whole))
    return named


def own_past(site: str) -> bool:
    """Whether a site of a decoder looks at what was said: Transformer blocks name the source apart."""
    return re.fullmatch(r"decoder\.blocks\.\d+\.attention", site) is not None


def called(site: str) -> str:
    """A site as people name it.

    >>> [called(f"{part}.0.{kind}") for part, kind in (("encoder.blocks", "attention"), ("decoder.blocks", "source"))]
    ['encoder 1', 'decoder 1']
    >>> called("decoder.blocks.1.attention"), called("decoder.reader.gaze.attention")
    ('decoder 2, itself', 'decoder')
    """
    found = BLOCK.fullmatch(site)
    if found is None:
        return site.partition(".")[0]
    return f"{found[1]} {int(found[2]) + 1}" + (", itself" if own_past(site) else "")


def in_one(seen: Recording) -> Recording:
    """One table for each site: a recurrent decoder attends step by step, which is a row at a time."""
    steps: dict[str, list[Seen]] = {}
    for name, one in seen.items():
        steps.setdefault(name.partition("#")[0], []).append(one)
    tables = {
        name: rows[0] if len(rows) == 1 else Whole(torch.cat([row.dense() for row in rows], dim=1))
        for name, rows in steps.items()
    }
    return Recording(tables, notes=seen.notes)
