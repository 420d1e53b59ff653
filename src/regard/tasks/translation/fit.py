"""Sizes that follow from the number of pairs: a large model learns few pairs by heart and translates no other."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from regard.tasks.translation.config import SIDES, TranslationConfig
from regard.training.config import configure, walk_fields

VOCABULARY = "vocabulary."
KINDS = tuple(f"vocabulary.{side}.kind" for side in SIDES)
BUDGET = "learning.budget"
# Fields of the model that become narrower, and how many times the width of a token's vector they may have.
WIDTHS = {
    "model.size": 1,
    "model.recurrent.hidden": 1,
    "model.attention.hidden": 1,
    "model.transformer.hidden": 2,
    "model.convolutional.size": 1,
}


class SmallSize(NamedTuple):
    """What suits at most so many pairs: the width of vectors, and the tokens in a batch."""

    pairs: int
    width: int
    budget: int


# Tried with fresh pairs: generated English and Chinese (200), and sentences of Tatoeba (1,000 and 4,000).
SIZES = (SmallSize(500, 64, 512), SmallSize(5000, 128, 1024))


def find_size(pairs: int) -> SmallSize | None:
    """Return what suits so many pairs; none if there are enough for the preset as it is.

    >>> find_size(160), find_size(29_000)
    (SmallSize(pairs=500, width=64, budget=512), None)
    """
    return next((size for size in SIZES if pairs <= size.pairs), None)


def fit_config(config: TranslationConfig, pairs: int) -> TranslationConfig:
    """Return the configuration for so many pairs; fields in `learning.fixed` stay as they are.

    The pieces of byte-pair encoding would be whole clauses of few pairs, in Chinese above all: words and Chinese
    characters repeat, clauses do not.
    """
    size = find_size(pairs)
    if size is None:
        return config
    current: Any = dict(walk_fields(config))
    fitted: dict[str, object] = {name: min(current[name], times * size.width) for name, times in WIDTHS.items()}
    fitted |= {BUDGET: min(current[BUDGET], size.budget), **dict.fromkeys(KINDS, "word")}
    fixed = config.learning.fixed.split(",")
    return configure(config, None, {name: value for name, value in fitted.items() if name not in fixed})


def list_fixed(named: Mapping[str, object]) -> str:
    """Return which fields stay as they are because somebody named them, with commas between.

    >>> list_fixed({"model.size": "256", "vocabulary.source.size": "500"})
    'model.size,vocabulary.source.kind,vocabulary.target.kind'
    """
    kinds = KINDS if any(name.startswith(VOCABULARY) for name in named) else ()
    return ",".join([*(name for name in (*WIDTHS, BUDGET) if name in named), *kinds])


def describe_fit(config: TranslationConfig, pairs: int) -> Iterator[str]:
    """Yield a note on the sizes that were chosen because there are few pairs."""
    if find_size(pairs) is not None:
        kinds = " and ".join(dict.fromkeys((config.vocabulary.source.kind, config.vocabulary.target.kind)))
        sizes = f"vectors of {config.model.size}, batches of {config.learning.budget} tokens"
        flags = "--vocabulary.kind, --model.size and --learning.budget choose others"
        yield f"few pairs, so that a large model would learn them by heart: vocabulary by {kinds}, {sizes}; {flags}"
