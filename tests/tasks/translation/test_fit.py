"""A model for few pairs is small, unless somebody says how large it is to be."""

from pathlib import Path
from typing import Any

import pytest

from regard.tasks import import_task
from regard.tasks.translation.fit import fit_config, list_fixed
from regard.tasks.translation.presets import PRESETS, build_preset
from regard.training.config import walk_fields

PAIRS = 60


def build(tmp_path: Path, **values: object) -> Any:
    """Return the task of a new run on a small table."""
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"the {n} old cat\t那{chr(0x4E00 + n)}只老猫\n" for n in range(PAIRS)), encoding="utf-8")
    definition = import_task("translation")
    return definition.build_task(definition.configure(None, [str(table)], values))


def test_few_pairs_get_a_small_model_and_words(tmp_path: Path) -> None:
    task = build(tmp_path)
    config = task.config
    assert (config.model.size, config.model.recurrent.hidden, config.model.attention.hidden) == (64, 64, 64)
    assert (config.vocabulary.source.kind, config.vocabulary.target.kind) == ("word", "word")
    assert config.learning.budget == 512
    note = next(note for note in task.notes if note.startswith("few pairs"))
    assert "vocabulary by word, vectors of 64, batches of 512 tokens" in note
    assert sum("held out of" in note for note in task.notes) == 1


def test_what_is_named_stays(tmp_path: Path) -> None:
    values = {"model.size": "96", "vocabulary.kind": "character", "recurrent.hidden": "200"}
    config = build(tmp_path, **values).config
    assert (config.model.size, config.model.recurrent.hidden, config.model.attention.hidden) == (96, 200, 64)
    assert config.vocabulary.target.kind == "character"
    assert fit_config(config, PAIRS) == config, "a resumed run stays as it is"


def test_a_size_of_the_vocabulary_keeps_its_kind() -> None:
    assert list_fixed({"vocabulary.target.size": 500}) == "vocabulary.source.kind,vocabulary.target.kind"


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_becomes_larger_and_all_can_be_built(preset: str) -> None:
    before = build_preset(preset)
    for pairs in (10, 3000):
        after: dict[str, Any] = dict(walk_fields(fit_config(before, pairs)))
        numbers = {name: value for name, value in walk_fields(before) if isinstance(value, int)}
        assert all(after[name] <= value for name, value in numbers.items())
        assert after["model.size"] % after["model.transformer.heads"] == 0
    assert fit_config(before, 29_000) == before


def test_generated_text_is_endless_and_fits_any_model() -> None:
    definition = import_task("translation")
    config = definition.configure(None, ["phrases-zh"], {"data.size": "40"})
    assert definition.adapt_config(config, definition.open_data(config)).model == config.model
