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
