"""Every public class and function says what it does: in a docstring, whose first word is a verb for a function."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "regard"
NOT_VERBS = {
    "A",
    "All",
    "An",
    "Any",
    "Each",
    "Every",
    "For",
    "From",
    "How",
    "If",
    "In",
    "It",
    "Its",
    "Kind",
    "New",
    "No",
    "Of",
}
NOT_VERBS |= {"On", "One", "Only", "Some", "That", "The", "These", "This", "What", "When", "Where", "Which", "Who"}

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def list_definitions(tree: ast.AST) -> Iterator[Definition]:
    """Yield the classes and functions of a file that are not inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from list_definitions(node)


def is_imperative(word: str) -> bool:
    """Return whether a word may be a verb in the imperative: not an article, a formula, a plural or a gerund."""
    return re.fullmatch(r"[A-Z][a-z]+(?<![^s]s)(?<!ing)|Bring", word) is not None and word not in NOT_VERBS


def find_faults(text: str) -> Iterator[str]:
    """Yield the faults of the docstrings in one file."""
    tree = ast.parse(text)
    for node in list_definitions(tree):
        docstring, where = ast.get_docstring(node), f"line {node.lineno}, {node.name}"
        named_here = isinstance(node, ast.ClassDef) or node in tree.body
        if docstring is None:
            if named_here and not node.name.startswith("_"):
                yield f"{where}: no docstring"
        elif isinstance(node, ast.ClassDef) or any("property" in ast.unparse(item) for item in node.decorator_list):
            continue
        elif not is_imperative(docstring.split()[0].rstrip(",:")):
            yield f"{where}: begins with '{docstring.split()[0]}', expected a verb such as Return"


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_docstrings_begin_with_a_verb(file: Path) -> None:
    assert list(find_faults(file.read_text())) == []


@pytest.mark.parametrize(
    "first", ["The sum.", "$x$ of it.", "Returns it.", "Sums of it.", "BLEU of it.", "Reading it."]
)
def test_what_is_not_a_verb_is_found(first: str) -> None:
    assert list(find_faults(f'def total():\n    """{first}"""\n')) != []


def test_what_has_no_docstring_is_found() -> None:
    assert list(find_faults("def total():\n    pass\n\nclass Sum:\n    pass\n")) != []
    assert list(find_faults('def total():\n    """Return the sum."""\n\ndef _total():\n    pass\n')) == []
