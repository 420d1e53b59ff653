"""Translation as something that can be trained."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard.models import Model, build
from regard.tasks.data import (
    Pair,
    ParallelText,
    Vocabularies,
    batches,
    build_both,
    fingerprint,
    load_both,
    open_text,
    save_both,
)
from regard.tasks.data.fingerprints import check_same, keep
from regard.tasks.data.parts import sizes
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.numbered import Batch, Numbered, alike, numbered
from regard.tasks.translation.scoring import scores, sums
from regard.tasks.translation.text import ENDLESS, sample
from regard.tasks.translation.translating import Search, translate
from regard.training import Batched, Goal, Loss, Part


class Translation:
    """Learns to say in one language what was said in another. See `regard.training.Task` for what each method is."""

    def __init__(self, config: TranslationConfig, text: ParallelText, vocabularies: Vocabularies) -> None:
        self.config, self.text, self.vocabularies = config, text, vocabularies
        self.numbered = lru_cache(maxsize=1)(self.numbered_now)
        self.held_out = lru_cache(maxsize=1)(self.held_out_now)

    @property
    def goal(self) -> Goal:
        return goal_of(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the text."""
        tests = {name: len(pairs) for name, pairs in self.text.tests.items()}
        endless = self.config.data.text in ENDLESS
        counted = sizes("pairs", len(self.text.training(0)), len(self.text.validation), tests, endless=endless)
        return (counted, *self.text.notes, *self.numbered(0).notes, *self.losses())

    def losses(self) -> Iterator[str]:
        """Notes on characters that the vocabularies do not give back."""
        pairs, both = self.text.training(0), self.vocabularies
        lost = [{*both.source.lost(pair.source), *both.target.lost(pair.target)} for pair in pairs]
        for character in sorted(set().union(*lost)):
            count = sum(character in some for some in lost)
            yield f"{count:,} of the {len(pairs):,} pairs have {character}, which stands for a blank: it is read as one"

    def model(self) -> Model[Any]:
        return build(self.config.model, source=len(self.vocabularies.source), target=len(self.vocabularies.target))

    def numbered_now(self, epoch: int) -> Numbered:
        """The training pairs of an epoch; files have the same in each."""
        return numbered(self.text.training(epoch), self.vocabularies, self.config.learning.limit)

    def held_out_now(self) -> Numbered:
        """The validation pairs that are measured, as far as they are within the limit; one sentence where none is."""
        pairs = self.text.validation[: self.config.measure.most]
        return numbered(pairs, self.vocabularies, self.config.learning.limit) if pairs else Numbered([], [])

    def epoch(self, number: int, part: Part) -> Sequence[Batch]:
        pairs = self.numbered(number if self.config.data.text in ENDLESS else 0)
        seed, budget = self.config.training.seed, self.config.learning.budget
        return Batched(batches(pairs.lengths, budget, seed, number, rank=part.rank, world=part.world), pairs.batch)

    def loss(self, model: Any, batch: Batch) -> Loss:
        losses = model.loss(*batch, smoothing=self.config.learning.smoothing)
        return Loss(losses.total, losses.tokens)

    def measure(self, model: Any, part: Part) -> Mapping[str, float]:
        pairs = part.of(self.text.validation[: self.config.measure.most])
        # The share is of those within the limit: a share of all pairs might have none of them.
        held_out = Numbered(part.of(self.held_out().sources), part.of(self.held_out().targets))
        return self.surprise(model, held_out) | self.quality(model, pairs)

    def surprise(self, model: Any, held_out: Numbered) -> dict[str, float]:
        """How unlikely the right translations are to the model."""
        counted, device = {"surprise": 0.0, "tokens": 0.0}, next(model.parameters()).device
        lengths = [max(both) for both in held_out.lengths]
        for chosen in alike(lengths, self.config.learning.budget):
            losses = model.loss(*(tensor.to(device) for tensor in held_out.batch(chosen)))
            counted["surprise"] += float(losses.surprise)
            counted["tokens"] += losses.tokens
        return counted

    def quality(self, model: Any, pairs: Sequence[Pair]) -> dict[str, float]:
        """How good the model's own translations are."""
        search = Search(
            beam=self.config.measure.beam,
            budget=self.config.learning.budget,
            longest=self.config.model.longest,
        )
        found = translate(model, self.vocabularies, [pair.source for pair in pairs], search)
        return sums([one.first.text for one in found], [pair.target for pair in pairs], self.config.measure.tokenizer)

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / total["tokens"]} | scores(total)

    def save(self, folder: Path) -> None:
        save_both(self.vocabularies, folder)
        keep(folder, fingerprint(self.text))


def task(config: TranslationConfig, run: Path | None = None) -> Translation:
    """The task of a new run, or of one that has its vocabularies in a folder."""
    text = open_text(config.data)
    if run is not None:
        check_same("text", fingerprint(text), run)
        return Translation(config, text, load_both(run))
    cutting = config.vocabulary
    pairs = sample(text, config.data.text)
    return Translation(config, text, build_both(pairs, cutting.source, None if cutting.joint else cutting.target))


def goal_of(config: TranslationConfig) -> Goal:
    """What decides which weights are the best."""
    metric = config.measure.goal
    return Goal(metric, "lower" if metric == "loss" else "higher")
