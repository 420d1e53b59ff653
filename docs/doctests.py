"""An extension of griffe: the doctests of docstrings become blocks of code, and formulas keep their lines."""

import re
from typing import Any

from griffe import Extension, Object

DOCTEST = re.compile(r"(?:^>>> .*(?:\n(?!\n).*)*\n?)+", re.MULTILINE)


class FencedDoctests(Extension):
    """Puts a fence around every doctest: Markdown would take `>>>` for three quotations."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of what was found."""
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
