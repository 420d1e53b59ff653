"""What a reader has to hold in the head stays small: functions, files, the top of the tree; class names are unique."""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "regard"
FILES = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
NODES = [(path, node) for path, text in FILES.items() for node in ast.walk(ast.parse(text))]


def test_functions_are_short() -> None:
    """Docstrings and signatures count."""
    functions = [(path, node) for path, node in NODES if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {f"{path.name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1 for path, node in functions}
    assert {name: length for name, length in lengths.items() if length > 40} == {}
    sizes = sorted((node.end_lineno or 0) - node.lineno + 1 for _, node in functions)
    assert len(sizes) > 3000
    assert sizes[9 * len(sizes) // 10] <= 15


def test_files_are_short() -> None:
    others = [path for path in SOURCE.rglob("*") if path.suffix in (".js", ".cpp", ".hpp")]
    texts = FILES | {path: path.read_text(encoding="utf-8") for path in others}
    assert {str(path): text.count("\n") for path, text in texts.items() if text.count("\n") > 300} == {}


def test_a_class_name_stands_for_one_thing() -> None:
    names = Counter(node.name for _, node in NODES if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


def test_the_top_of_the_tree_fits_on_a_screen() -> None:
    assert len([path for path in SOURCE.iterdir() if path.suffix in ("", ".py") and path.name != "__pycache__"]) <= 15
