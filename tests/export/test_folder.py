"""A run that was exported is a run on any machine; what cannot be is refused by its sentence."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.errors import InputError
from regard.export import export
from regard.models import ModelConfig, build_model
from regard.models.config import AttentionConfig, RecurrentConfig
from regard.tasks import read_config
from regard.tasks.data import TextConfig, Vocabularies
from regard.tasks.data.vocabulary import TokenVocabulary
from regard.tasks.translation import TranslationConfig, TranslationSearchOptions, Translator

WORDS = TokenVocabulary(["▁one", "▁two", "▁three"], "word")
SMALL = ModelConfig(
    "recurrent", "bahdanau", size=6, recurrent=RecurrentConfig(hidden=5), attention=AttentionConfig(hidden=3)
)


def build_translator(place: str) -> Translator:
    torch.manual_seed(1)
    config = TranslationConfig(data=TextConfig(f"{place}/a.en,{place}/a.de"), model=SMALL)
    config = replace(config, training=replace(config.training, folder=Path(place) / "run", device="cpu"))
    return Translator(config, Vocabularies(WORDS, WORDS), build_model(SMALL, source=7, target=7).eval())


def test_it_loads_again_and_knows_no_path_of_the_old_machine(tmp_path: Path) -> None:
    torchs = build_translator("/old/machine")
    export(torchs, tmp_path / "somewhere" / "new")
    folder = (tmp_path / "somewhere" / "new").rename(tmp_path / "moved")
    for file in folder.rglob("*"):
        assert file.is_dir() or (b"/old" not in file.read_bytes() and str(tmp_path).encode() not in file.read_bytes())
    again = Translator.load(read_config(folder), folder)
    assert again.config.data.text == "a.en,a.de"
    assert again.config.training.folder == Path("new")
    text, search = ["one two", "three one one"], TranslationSearchOptions(beam=3)
    assert [one.best[0][:3] for one in again.translate(text, search)] == [
        one.best[0][:3] for one in torchs.translate(text, search)
    ]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    with pytest.raises(InputError) as caught:
        export(build_translator("x"), tmp_path / "there")
    got = f"{tmp_path / 'there'}, which is there already"
    assert str(caught.value) == f"output: got {got}, expected a new folder; fix: give another one, or remove it"
