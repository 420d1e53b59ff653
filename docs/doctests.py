"""Docstrings as Markdown: doctests become blocks of code, and formulas keep their lines."""

import re

AFTER_ANOTHER = re.compile(r"\$\$\n[ ]*\$\$")
DOCTEST = re.compile(r"(?:^>>> .*(?:\n(?!\n).*)*\n?)+", re.MULTILINE)


def part_formulas(text: str) -> str:
    """Put an empty line between two formulas that follow each other, which Markdown would take for one."""
    return AFTER_ANOTHER.sub("$$\n\n$$", text)


def fence_doctests(text: str) -> str:
    """Put a fence around every doctest: Markdown would take `>>>` for three quotations."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", part_formulas(text))
