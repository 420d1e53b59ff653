"""Engines: by name, by the choice of `auto`, and with fewer bits."""

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from regard.errors import InputError
from regard.export import engines, export, open_engine
from regard.export.engines import EngineFiles, EngineTrial
from regard.models.kernels.prepacked import Precision, unsupported_error
from regard.tasks.translation import TranslationSearchOptions, Translator

sys.path.insert(0, str(Path(__file__).parent))

from test_ctranslate2 import TEXTS, train_translator
from test_exported import CONFIGS, build

pytestmark = pytest.mark.usefixtures("as_installed")  # a model is trained, and shape checks cannot be traced
SEARCH = TranslationSearchOptions()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder of a Transformer that has learned a little."""
    export(train_translator(), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for several tests: what engines need is made once."""
    folder = tmp_path_factory.mktemp("engines") / "run"
    export(train_translator(), folder)
    return folder


def load(made: Translator | None = None) -> Translator:
    return copy.deepcopy(train_translator() if made is None else made)  # engines prepack the model


def say(made: Translator, texts: list[str] = TEXTS) -> list[list[str]]:
    return [one.best[0].tokens if one.best else [] for one in made.translate(texts, SEARCH)]


@pytest.mark.parametrize("engine", ["torch", "ct2", "onnx", "auto"])
def test_every_engine_finds_the_same(engine: Any, shared_run: Path) -> None:
    assert say(open_engine(load(), shared_run, engine).translator) == say(train_translator())


def test_auto_takes_what_is_faster_and_equal(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"torch": 2.0, "ct2": 0.5}

    def make_trial(made: Translator, texts: list[str]) -> EngineTrial:
        name = "torch" if type(made) is Translator else "ct2"
        return EngineTrial(made.translate(texts, SEARCH), seconds[name])

    monkeypatch.setattr(engines, "try_engine", make_trial)
    choice = open_engine(load(), run, "auto")
    assert choice[1:] == ("ct2", "4.0 times as fast as torch on 24 texts")
    seconds["ct2"] = 3.0
    assert open_engine(load(), run, "auto")[1:] == choice[1:]  # remembered
    (record,) = run.glob("engines/*/float32.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"versions": {}}))  # of other programs
    assert open_engine(load(), run, "auto")[1:] == ("torch", "ct2 takes 1.5 times as long")
    record.unlink()
    seconds["ct2"] = 0.5
    monkeypatch.setattr(engines, "agree", lambda *results: False)
    assert open_engine(load(), run, "auto")[1:] == ("torch", "ct2 finds other hypotheses")


def test_auto_says_what_no_other_engine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(CONFIGS["bahdanau"])
    export(made, tmp_path / "run")
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr("regard.export.graphs.importlib.util.find_spec", lambda name: None)
    choice = open_engine(load(made), tmp_path / "run", "auto")
    assert choice.name == "torch"
    assert choice.reason == (
        "ct2: model.encoder: got recurrent, expected transformer, which is what CTranslate2 has; "
        "onnx: onnx: got no such package, expected it installed"
    )


def test_a_recurrent_model_runs_in_onnxruntime(tmp_path: Path) -> None:
    made = build(CONFIGS["bahdanau"])
    export(made, tmp_path / "run")
    texts = ["w1 w2 w3", "", "w7", "w12 w0 w0 w5 w4"]
    assert say(open_engine(load(made), tmp_path / "run", "onnx").translator, texts) == say(made, texts)


@pytest.mark.parametrize(("engine", "precision"), [("ct2", "int8"), ("onnx", "int8"), ("torch", "int8")])
def test_fewer_bits_change_little(engine: Any, precision: Precision, shared_run: Path) -> None:
    found = open_engine(load(), shared_run, engine, precision).translator.translate(TEXTS, SEARCH)
    for one, other in zip(train_translator().translate(TEXTS, SEARCH), found, strict=True):
        assert bool(one.best) == bool(other.best)
        assert not one.best or other.best[0].score == pytest.approx(one.best[0].score, abs=0.5)


def test_what_an_engine_has_not_is_told(run: Path) -> None:
    with pytest.raises(InputError, match=r"precision: got bfloat16 \(no such kernels in ONNX Runtime on a CPU\)"):
        open_engine(load(), run, "onnx", "bfloat16")


def test_damaged_files_of_a_choice_are_no_end(run: Path) -> None:
    assert open_engine(load(), run, "auto").name in ("torch", "ct2")
    (record,) = run.glob("engines/*/float32.json")
    record.write_text("{")
    assert say(open_engine(load(), run, "auto").translator) == say(train_translator())


def test_of_several_that_ask_at_once_one_exports(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def count_exports(*arguments: Any) -> None:
        made.append(arguments)
        export(*arguments)

    monkeypatch.setattr(engines, "export", count_exports)
    files = EngineFiles(run, None)
    convert: Callable[..., Path] = files.convert_once
    threads = [Thread(target=convert, args=(train_translator(), "ct2")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert say(open_engine(load(), run, "ct2").translator) == say(train_translator())
    assert len(made) == 1


def test_the_run_on_a_disk_that_cannot_be_written_to_is_translated_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(engines, "write_file", refuse)
    monkeypatch.setattr(engines, "lock_file", refuse)
    choice = open_engine(load(), run, "auto")
    assert choice.name == "torch"
    assert torch.is_tensor(next(choice.translator.model.parameters()))


def test_a_precision_that_nothing_has_is_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise unsupported_error("bfloat16", "no such operator")

    monkeypatch.setattr(engines, "prepack", refuse)
    monkeypatch.setattr(engines, "open_rivals", lambda *arguments: ({}, []))
    with pytest.raises(InputError, match=r"precision: got bfloat16 \(no such operator\)"):
        open_engine(load(), run, "auto", "bfloat16")
