"""Blocks that differ between the languages in what they print, and in nothing else, run once for both."""

import ast
import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

PAIR = "print_in_both_languages"


class BothOutputs(io.TextIOBase):
    """Keeps what is printed in English and in Chinese; what is printed once is in both."""

    def __init__(self) -> None:
        self.texts = (io.StringIO(), io.StringIO())

    def write(self, text: str) -> int:
        """Write the same in both languages."""
        for each in self.texts:
            each.write(text)
        return len(text)

    def print_pair(self, english: Callable[[], Any], chinese: Callable[[], Any]) -> None:
        """Print in each language; random numbers are drawn by the first only."""
        import torch

        state = torch.get_rng_state()
        for out, say in zip(self.texts[::-1], (chinese, english), strict=True):
            torch.set_rng_state(state)
            with contextlib.redirect_stdout(out):
                say()


def merge_blocks(english: str, chinese: str) -> ast.Module | None:
    """Return a block that prints in both languages, or None if the two do different things.

    >>> ast.unparse(merge_blocks("x = 1\\nprint('one', x)", "x = 1\\nprint('一', x)"))
    "x = 1\\nprint_in_both_languages(lambda: print('one', x), lambda: print('一', x))"
    >>> merge_blocks("x = 1", "x = 2") is None
    True
    """
    first, second = ast.parse(english), ast.parse(chinese)
    for own, other in zip(find_prints(first), find_prints(second), strict=False):
        if ast.dump(own) != ast.dump(other):
            text = f"{PAIR}(lambda: {ast.unparse(own)}, lambda: {ast.unparse(other)})"
            own.value = other.value = ast.parse(text, mode="eval").body
    return ast.fix_missing_locations(first) if ast.dump(first) == ast.dump(second) else None


def is_drawing(code: str) -> bool:
    """Return whether a block leaves nothing but a figure, so that what follows does not depend on its language.

    >>> is_drawing("from a import draw\\nfigure = draw(1)"), is_drawing("figure = x = 1"), is_drawing("f()")
    (True, False, False)
    """
    rest = [node for node in ast.parse(code).body if not isinstance(node, ast.ImportFrom)]
    return (
        len(rest) == 1 and isinstance(rest[0], ast.Assign) and [ast.unparse(to) for to in rest[0].targets] == ["figure"]
    )


def find_prints(tree: ast.AST) -> Iterator[ast.Expr]:
    """Yield the statements that print."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "print":
            yield node
