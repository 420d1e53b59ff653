"""Files that a user names: nothing takes the place of the old one before the new one is whole."""

import os
import resource
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from regard.cli.evaluate_translation import save_translations
from regard.cli.output import print_text, redirect_output
from regard.datasets.output_files import replace_output
from regard.errors import RegardError
from regard.inspect.draw.output import save_figure
from regard.inspect.draw.report import save_report
from regard.inspect.recording import Recording

LONG = "answer\n" * 50_000


def write_answers(path: Path) -> None:
    with redirect_output(path):
        print_text(LONG)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.png": lambda path: save_figure(Figure(), path),
    "a.svg": lambda path: save_figure(Figure(), path),
    "a.pdf": lambda path: save_figure(Figure(), path),
    "a.html": lambda path: save_report(LONG, path),
    "a.tsv": write_answers,
    "a.txt": lambda path: save_translations([LONG], "a", path.parent),
    "a.safetensors": lambda path: Recording.from_weights({"a": torch.eye(50)}).save(path),
}


@pytest.fixture
def full_disk() -> Iterator[None]:
    """A disk on which no file can be longer than 100 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path: Path, name: str) -> None:
    with pytest.raises((OSError, RegardError)):
        WRITERS[name](tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_text("older")
    with pytest.raises((OSError, RegardError)):
        WRITERS[name](tmp_path / name)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "older")]


@pytest.mark.parametrize("name", WRITERS)
def test_a_new_file_takes_the_place_of_the_older(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("older")
    WRITERS[name](tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).stat().st_size > 100


def test_an_interruption_keeps_what_was_written_beside_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("older")
    with pytest.raises(KeyboardInterrupt), redirect_output(tmp_path / "a.tsv"):  # noqa: PT012
        print_text("one")
        raise KeyboardInterrupt
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"a.tsv": "older", "a.tsv.part": "one\n"}


def test_links_modes_and_what_is_no_file_stay(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("older")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    with replace_output(tmp_path / "link") as path:
        path.write_text("newer")
    assert (tmp_path / "link").readlink() == Path("real")
    assert (tmp_path / "real").read_text() == "newer"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640
    with replace_output(os.devnull) as path:
        path.write_text("newer")
    assert path == Path(os.devnull)
    assert not Path(os.devnull).is_file()


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    with replace_output(tmp_path / ("a" * 251 + ".png")) as path:
        path.write_text("new")
    assert [len(found.name) for found in tmp_path.iterdir()] == [255]
