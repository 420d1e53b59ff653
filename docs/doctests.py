"""An extension of griffe: the doctests of docstrings become blocks of code, and formulas keep their lines."""

import re
from typing import Any

from griffe import Extension, Object

AFTER_ANOTHER = re.compile(r"\$\$\n[ ]*\$\$")
DOCTEST = re.compile(r"(?:^>>> .*(?:\n(?!\n).*)*\n?)+", re.MULTILINE)


def part_formulas(text: str) -> str:
    """Put an empty line between two formulas that follow each other, which Markdown would take for one."""
    return AFTER_ANOTHER.sub("$$\n\n$$", text)


class FencedDoctests(Extension):
    """Puts a fence around every doctest: Markdown would take `>>>` for three quotations."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of what was found."""
        if obj.docstring is not None:
            obj.docstring.value = part_formulas(obj.docstring.value)
            obj.docstring.value = DOCTEST.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
