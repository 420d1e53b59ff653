"""Every command and name on the written pages of the site exists, in both languages."""

import re
import tomllib
from pathlib import Path

import pytest

import regard
import regard.layers
from regard.cli.commands import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for language in ("en", "zh") for path in (DOCS / language).rglob("*.md"))
ELSEWHERE = {"KernelRegressor": "regard.layers.estimators"}


def read_page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_commands_exist(name: str) -> None:
    commands = set(re.findall(r"(?:\$ |`)regard ([a-z]+)", read_page(name)))
    assert commands <= set(app), commands - set(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_trainings_are_understood(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each task with its preset and fields, once."""
    whole = "\n".join(read_page(name) for name in PAGES if name.startswith(language))
    lines = {line.strip() for line in re.findall(r"(?:^\$ |`)regard (train [a-z][^#\n`]*)", whole, re.MULTILINE)}
    assert len(lines) > 20
    for line in sorted(lines):
        if line.endswith("--help") or "chebyshev" in line:  # a score that the page writes itself
            continue
        app([*line.split(), "--print-config"], exit_on_error=False, print_error=False, result_action="return_value")
        assert tomllib.loads(capsys.readouterr().out)["task"] == line.split()[1]


@pytest.mark.parametrize("name", [name for name in PAGES if "/articles/" in name])
def test_the_names_beside_the_terms_of_an_article_exist(name: str) -> None:
    rows = [line.split(" | ")[2] for line in read_page(name).splitlines() if line.count(" | ") == 4]
    names = {found for row in rows for found in re.findall(r"`([A-Z]\w+)", row)}
    assert names or name.endswith(("index.md", "terms.md"))
    for each in names:
        home = ELSEWHERE.get(each)
        assert home or hasattr(regard, each) or hasattr(regard.layers, each), each
