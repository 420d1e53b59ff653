"""Where every layer and head of a translator looks while it says a given translation."""

import re
from collections.abc import Sequence

import torch

from regard.errors import InputError, wrong
from regard.observing import observe
from regard.recording import Labels, Recording, Seen, Whole
from regard.tasks.data import BEGIN, END
from regard.tasks.translation.translator import Translator

BLOCK = re.compile(r"(encoder|decoder)\.(?:blocks|stages)\.(\d+)\.(attention|source)")


def looked(translator: Translator, source: Sequence[int], said: Sequence[int]) -> Recording:
    """All attention while the model reads `source`, END behind it, and is made to say `said` and END.

    Rows are the tokens that are said, columns those that are read: of the source, or of what was said before.
    """
    model = translator.model
    device = next(model.parameters()).device
    row = torch.tensor([list(source)], device=device)
    with torch.inference_mode(), observe(model) as seen:
        encoded = model.encode(row, torch.tensor([len(source)], device=device))
        model.decoder.teach(torch.tensor([[BEGIN, *said]], device=device), encoded)
    if not seen:
        raise nowhere()
    return labelled(in_one(seen), translator, source, said)


def nowhere() -> InputError:
    """What is said where somebody wants to see the attention of a model that has none."""
    fix = "choose a run of another model, such as bahdanau"
    return wrong("show", "a model without attention", "one that looks at its source", fix)


def labelled(seen: Recording, translator: Translator, source: Sequence[int], said: Sequence[int]) -> Recording:
    """The same with names for people and the tokens beside it."""
    read = tuple(translator.vocabularies.source.tokens(source))
    answers = tuple(translator.vocabularies.target.tokens([*said, END]))
    before = tuple(translator.vocabularies.target.tokens([BEGIN, *said]))
    named = Recording(notes=seen.notes, metadata=seen.metadata)
    for name, one in seen.items():
        kept = named.add(called(name), one)
        if name.startswith("encoder"):
            labels = Labels(read, read)
        else:
            labels = Labels(answers, before if own_past(name) else read)
        labels.check(kept, one)
        named.labels[kept] = labels
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
