"""`regard serve` with what cannot be served: one sentence, exit code 2."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.inspect.display.parts import TILE
from regard.web.app import format_url


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["nowhere"],
            "run: got nowhere, which is not there, expected a run folder or a recording; fix: check the path, or make",
        ),
        (
            ["."],
            "run: got ., which is not a run folder, expected a folder that regard train made; fix: check the path, or",
        ),
        (["--port", "99999"], "port: got 99999 of 127.0.0.1 "),
        (["--workers", "0"], "workers: got 0, expected more than 0; fix: leave it out for the usual limit"),
    ],
    ids=["nowhere", "no-run", "port", "workers"],
)
def test_bad_input_is_one_sentence(regard: Callable[..., Any], arguments: list[str], sentence: str) -> None:
    done = regard("serve", *arguments)
    assert done.code == 2
    assert done.errors.startswith(f"regard: {sentence}")
    assert done.errors.count("\n") == 1


def test_the_address_of_a_version_6_host_has_brackets() -> None:
    assert format_url("::1", 80, None) == "http://[::1]:80/"


def test_every_word_is_there_in_both_languages() -> None:
    """The page asks for words by name; one that is missing in Chinese would be English there."""
    text = (Path(__file__).parents[2] / "src/regard/web/static/page/words.js").read_text(encoding="utf-8")
    words = re.findall(r'^  "?([\w-]+)"?: \["(.+)", "(.+)"\],$', text, re.MULTILINE)
    assert len(words) == text.count("\n  ") > 60
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in chinese) for _, _, chinese in words)
    for name, english, chinese in words:
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", chinese)), name


def test_tiles_have_the_size_that_the_page_expects() -> None:
    text = (Path(__file__).parents[2] / "src/regard/web/static/source.js").read_text(encoding="utf-8")
    assert f"export const SIZE = {TILE};" in text
