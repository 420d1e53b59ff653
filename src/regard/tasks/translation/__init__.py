"""Translation: from parallel text to a model that translates, and to its alignments."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from regard.errors import wrong
from regard.tasks.data import ParallelText, TextConfig, VocabularyConfig, open_text
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.prepared_folder import Facts, prepare_folder
from regard.tasks.data.text_corpus import StoredCorpus
from regard.tasks.data.vocabularies import Vocabularies, build_vocabularies, load_vocabularies, save_vocabularies
from regard.tasks.definition import TaskDefinition, make_path_absolute
from regard.tasks.translation.config import SIDES, TranslationConfig
from regard.tasks.translation.fit import fit_config, list_fixed
from regard.tasks.translation.metrics import choose_tokenizer
from regard.tasks.translation.predictor import TranslationPredictor
from regard.tasks.translation.presets import PRESETS, build_preset
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.text import collect_vocabulary_pairs
from regard.tasks.translation.translations import (
    TranslationHypothesis,
    TranslationResult,
    TranslationSearchOptions,
    translate,
)
from regard.tasks.translation.translator import Translator


def prepare_vocabularies(config: TranslationConfig, data: ParallelText) -> Vocabularies:
    """Return the vocabularies of a new run; those of a stored corpus are kept beside it."""
    kinds, name = config.vocabulary, config.data.text
    chosen = kinds.source, None if kinds.joint else kinds.target
    if not isinstance(data, StoredCorpus):
        return build_vocabularies(collect_vocabulary_pairs(data, name), *chosen)
    folder = data.folder / f"vocabulary-{digest([repr(chosen).encode()])}"

    def build(place: Path) -> Facts:
        save_vocabularies(build_vocabularies(collect_vocabulary_pairs(data, name), *chosen), place)
        return {}

    prepare_folder(folder, {"text": data.fingerprint, "kinds": repr(chosen)}, build)
    return load_vocabularies(folder)


class TranslationDefinition(TaskDefinition[TranslationConfig]):
    """Translate sentences."""

    presets = PRESETS
    data_help = """TEXT is numbers, dates or phrases-zh (English to Chinese), which are embedded and endless; a folder
with train.en, train.de, …, a table with a tab between sentence and translation, or two aligned files; plain or gzip,
UTF-8."""
    data_field, data_noun = "text", "text"
    aliases: Mapping[str, Sequence[str]] = {
        f"vocabulary.{field.name}": [f"vocabulary.{side}.{field.name}" for side in SIDES]
        for field in fields(VocabularyConfig)
    }

    def join_data_names(self, names: Sequence[str]) -> str:
        """Return one name, or two files with a comma between; a path that has a comma itself stays as it was typed."""
        if len(names) > 2:
            fix = "name the file of the sentences, then that of the translations"
            raise wrong("text", f"{len(names)} names", "a name, or two aligned files", fix)
        paths = {name: make_path_absolute(name) for name in names}
        return ",".join(name if "," in path else path for name, path in paths.items())

    def shorten_data_name(self, name: str) -> str:
        return super().shorten_data_name(name.partition(",")[0])

    def build_preset(self, name: str, data: TextConfig) -> TranslationConfig:
        return build_preset(name, data)

    def configure(self, preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> TranslationConfig:
        config, fixed = super().configure(preset, data, values), list_fixed(self.resolve_values(values))
        return replace(config, learning=replace(config.learning, fixed=fixed)) if fixed else config

    def open_data(self, config: TranslationConfig) -> ParallelText:
        return open_text(config.data)

    def adapt_config(self, config: TranslationConfig, data: ParallelText) -> TranslationConfig:
        chosen = choose_tokenizer(config.measure.tokenizer, [pair.target for pair in data.validation])
        config = replace(config, measure=replace(config.measure, tokenizer=chosen))
        return config if data.endless else fit_config(config, len(data.load_training(0)))

    def assemble_task(self, config: TranslationConfig, data: ParallelText, run: Path | None) -> TranslationTask:
        if run is not None:
            return TranslationTask(config, data, load_vocabularies(run))
        return TranslationTask(config, data, prepare_vocabularies(config, data))

    def load(self, config: TranslationConfig, run: Path, weights: Path | None = None) -> TranslationPredictor:
        return TranslationPredictor(Translator.load(config, run, weights), run)


__all__ = [
    "TranslationConfig",
    "TranslationDefinition",
    "TranslationHypothesis",
    "TranslationResult",
    "TranslationSearchOptions",
    "TranslationTask",
    "Translator",
    "build_preset",
    "translate",
]
