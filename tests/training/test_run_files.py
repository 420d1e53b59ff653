"""Every file of a run folder replaced by something else: whoever reads it ends with a sentence, and never waits."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import regard
from regard.cli.run_list import summarize_run
from regard.cli.show_curves import read_curves
from regard.errors import RegardError
from regard.training.config import configure
from tests.web.tiny_runs import make_run, make_untrained

TASKS = ("translation", "captioning", "speech", "reading", "vqa")
LONG = 2**33  # bytes, without any on the disk


def replace_by_pipe(path: Path) -> None:
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.mkdir()


def replace_by_loop(path: Path) -> None:
    path.symlink_to(path.name)


def replace_by_nothing(path: Path) -> None:
    path.touch()


def replace_by_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def replace_by_zeros(path: Path) -> None:
    path.touch()
    os.truncate(path, LONG)


def replace_by_other_bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe" * 99)


def replace_by_brackets(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


WAYS = (replace_by_pipe, replace_by_folder, replace_by_loop, replace_by_nothing, replace_by_device, replace_by_zeros,
        replace_by_other_bytes, replace_by_brackets)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    found = {"translation": make_run(place / "translation", "bahdanau")}
    small = {"data.questions": "scenes", "data.scenes": "12", "data.held_out": "4", "data.pixels": "16"}
    return found | {
        task: make_untrained(place / task, task, **(small if task == "vqa" else {}))
        for task in TASKS
        if task not in found
    }


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.removeprefix("replace_by_"))
@pytest.mark.parametrize("task", TASKS)
def test_a_file_that_is_something_else_ends_in_a_sentence(
    task: str, way: Callable[[Path], None], runs: dict[str, Path], tmp_path: Path
) -> None:
    for name in [path.relative_to(runs[task]) for path in sorted(runs[task].rglob("*")) if path.is_file()]:
        shutil.copytree(runs[task], tmp_path / "run", dirs_exist_ok=True, symlinks=True)
        (tmp_path / "run" / name).unlink()
        way(tmp_path / "run" / name)
        for read in (summarize_run, read_curves, regard.load):
            said = ""
            try:
                read(tmp_path / "run")
            except RegardError as error:
                said = str(error)
            assert not said or (": got " in said and "\n" not in said and len(said) < 2000), (name, said)
        shutil.rmtree(tmp_path / "run")


@pytest.mark.parametrize("size", ["1000000000", "1" + 400 * "0"])
def test_a_size_that_cannot_be_meant_is_named(size: str, runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["translation"], tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    file.write_text(file.read_text().replace("\nsize = 8\n", f"\nsize = {size}\n", 1))
    with pytest.raises(RegardError, match=r"model.size: got .*, expected at most 1,048,576; fix: use a smaller number"):
        regard.load(tmp_path / "run")


def test_the_largest_sizes_together_are_one_sentence(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["translation"], tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    text = file.read_text().replace('encoder = "recurrent"', 'encoder = "convolutional"')
    file.write_text(text.replace("\nsize = 256\nwidth = 3", "\nsize = 1048576\nwidth = 1048575"))
    assert "1048575" in file.read_text()
    with pytest.raises(RegardError, match=r"expected the weights of this model; fix: use the config\.toml of the run"):
        regard.load(tmp_path / "run")


def test_numbers_of_training_are_not_bounded() -> None:
    from regard.tasks import import_task

    config = configure(import_task("translation").default, None, {"training.stop.steps": "10000000"})
    assert config.training.stop.steps == 10_000_000


@pytest.mark.parametrize("spellings", ["-1000", "0", "1e400", "1000000000"])
def test_a_list_of_words_with_any_number_is_one_sentence(spellings: str, runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["reading"], tmp_path / "run")
    file = tmp_path / "run" / "words.json"
    file.write_text(file.read_text().replace('"spellings": 500', f'"spellings": {spellings}', 1))
    assert spellings in file.read_text()
    with pytest.raises(RegardError, match=r"words: got .*words.json, which cannot be read, expected a list"):
        regard.load(tmp_path / "run")


@pytest.mark.parametrize("task", ["[]", "{}", "3", '"other"'])
def test_a_task_that_is_none_is_one_sentence(task: str, runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["translation"], tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    file.write_text(file.read_text().replace('task = "translation"', f"task = {task}", 1))
    with pytest.raises(RegardError, match=r"task: got .* in .*config.toml, expected one of translation, "):
        regard.load(tmp_path / "run")


def test_a_share_of_400_digits_is_one_short_sentence(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["translation"], tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    file.write_text(file.read_text().replace("dropout = 0.0", f"dropout = {10**400}", 1))
    with pytest.raises(RegardError, match=r"dropout: got 10{99}…, expected a number; fix: write a value such as"):
        regard.load(tmp_path / "run")
