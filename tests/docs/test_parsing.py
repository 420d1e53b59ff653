"""Every `regard …` command of the pages and of both READMEs is understood by the command line's own parser."""

import re
import shlex
from pathlib import Path

import pytest

from regard.cli.commands import app

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh-CN.md",
    *sorted(path for language in ("en", "zh") for path in (ROOT / "docs" / language).rglob("*.md")),
]
DOWNLOADED = ("mnist", "fsdd", "multi30k", "tatoeba", "squad")  # flickr8k has no photographs
COMMAND = re.compile(r"(?:^\$ |`)regard ([a-z-]+(?: [^`\n]*)?)", re.MULTILINE)


def list_commands() -> list[str]:
    """Return all commands, without comments, redirections and pipes."""
    found = {each for path in PAGES for each in COMMAND.findall(path.read_text(encoding="utf-8"))}
    return sorted({re.split(r"\s+[#<>|]|\s*\\$|…", each)[0].strip() for each in found})


def test_there_are_many() -> None:
    assert len(list_commands()) > 60


@pytest.mark.parametrize("line", list_commands())
def test_a_command_is_understood(line: str) -> None:
    app.parse_args(shlex.split(line), exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    "path", [*PAGES, ROOT / "docs" / "tasks.md"], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_commands_can_be_run_one_after_another(path: Path) -> None:
    """Data are downloaded before they are trained on, and another model has a folder of its own."""
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for name in re.findall(rf"^\$ regard train \S+ ({'|'.join(DOWNLOADED)})\b", block, re.MULTILINE):
            assert f"$ regard data get {name}" in block.partition(f" {name} ")[0] + block.partition(f" {name}\n")[0]
    changed = [line for line in COMMAND.findall(text) if line.startswith("train ") and " --model." in line]
    assert [line for line in changed if " --folder " not in line] == []
