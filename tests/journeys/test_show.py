"""`regard show` as a page and of saved recordings, by the command as a user has it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.inspect.recording import Recording
from tests.inspect.draw.test_report import unpack_numbers


def read_contents(page: Path) -> dict[str, Any]:
    """Return the data of a page."""
    found = re.search(r'id="recording">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture
def saved_recording(regard: Callable[..., Any], tmp_path: Path) -> Recording:
    """A recording in a file, in the folder where commands run."""
    weights = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1)).softmax(-1)
    recording = Recording.from_weights(
        {"first": weights, "last": weights.flip(1)}, queries=["我", "b", "c"], keys=list("wxyz")
    )
    recording.save(tmp_path / "seen.safetensors")
    return recording


def test_a_recording_is_shown_in_the_terminal(regard: Callable[..., Any], saved_recording: Recording) -> None:
    done = regard("show", "seen.safetensors", "first", "--head", 1)
    assert done.code == 0, done.errors
    lines = done.output.splitlines()
    assert lines[0] == "first, head 1; █ is 1, the largest weight is 0.8"
    assert lines[1].split() == list("wxyz")
    assert [line.split()[0] for line in lines[2:]] == ["我", "b", "c"]


def test_a_recording_is_drawn_without_a_word_of_fonts(
    regard: Callable[..., Any], saved_recording: Recording, tmp_path: Path
) -> None:
    done = regard("show", "seen.safetensors", "--output", "map.png")
    assert (done.code, done.output, done.errors) == (0, "picture: map.png\n", "")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("flag", ["--html", "--output"])
def test_a_recording_is_a_page_with_every_bit(
    regard: Callable[..., Any], saved_recording: Recording, tmp_path: Path, flag: str
) -> None:
    assert regard("show", "seen.safetensors", flag, "page.html").output == "page: page.html\n"
    data = read_contents(tmp_path / "page.html")
    (chapter,) = data["chapters"]
    assert [site["name"] for site in chapter["sites"]] == ["first", "last"]
    table = unpack_numbers(data["tables"][chapter["sites"][1]["table"]])
    assert (table == saved_recording["last"].dense().numpy().ravel()).all()
    assert data["labels"][chapter["sites"][0]["rows"]] == ["我", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["seen.safetensors", "lost"], "site: got lost, expected 2 names; fix: try 'last'"),
        (["seen.safetensors", "--head", 3], "head: got 3, expected 0 … 1; fix: count heads from 0, or name none"),
        (
            ["none.safetensors"],
            "recording: got none.safetensors, which is not a file, expected a file of Recording.save",
        ),
        (["text.txt"], "recording: got text.txt ("),
        (["seen.safetensors", "--output", "a.doc"], "output: got a.doc, expected a name that ends in .png, .svg, .pdf"),
        (["seen.safetensors", "--html", "no/a.html"], "output: got no/a.html, expected a folder that exists"),
    ],
    ids=["site", "head", "missing", "kind", "ending", "folder"],
)
def test_what_is_wrong_is_one_sentence(
    regard: Callable[..., Any], saved_recording: Recording, tmp_path: Path, arguments: list[Any], sentence: str
) -> None:
    (tmp_path / "text.txt").write_text("hello")
    done = regard("show", *arguments)
    assert done.code == 2
    assert done.errors.startswith(f"regard: {sentence}")
    assert done.errors.count("\n") == 1


def test_a_long_recording_fits_the_terminal_by_its_largest(regard: Callable[..., Any], tmp_path: Path) -> None:
    weights = torch.zeros(1, 700, 900)
    weights[0, 699, 899] = 1.0
    Recording.from_weights({"long": weights}).save(tmp_path / "long.safetensors")
    done = regard("show", "long.safetensors")
    assert done.code == 0, done.errors
    legend, *table = done.output.splitlines()
    assert legend == "long; █ is 1, the largest weight is 1"
    assert "".join(table).count("█") == 2  # one cell, two signs wide
    assert any(line.split()[:2] == ["694–699", "██"] for line in table)
