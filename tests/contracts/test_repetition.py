"""The source repeats itself little: what has one shape is written once. Declarations and tables are passed over."""

import ast
import keyword
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
KINDS = {".py", ".js", ".css", ".cpp", ".hpp"}
LINES = 6  # of a run
WORDS = 16  # names, texts and numbers of a run: with fewer it is a form of the language
COMMON = 8  # a run in more places is a form of the house, such as the head of a dataclass
ALLOWED = 8  # pairs of files, or files, that share a run
TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\w+(?:\.\d+)?|\S")
TOKEN_WORD = re.compile(r"[\w\"'`]")
PASSED_OVER = re.compile(r"\s*(#|//|/\*|\*|import\b|export \{)|\W*$")


def find_shape(line: str) -> str:
    """Return a line with `n` for its names, texts and numbers; keywords and punctuation stay."""
    tokens = TOKEN.findall(line.partition("  # ")[0])
    return " ".join("n" if TOKEN_WORD.match(one) and not keyword.iskeyword(one) else one for one in tokens)


def list_lines(name: str, text: str) -> Iterator[str]:
    """Yield the lines that count: not blank, not comments, docstrings, imports or declarations of fields."""
    hidden: set[int] = set()
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            text_alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if text_alone or isinstance(node, ast.Import | ast.ImportFrom | ast.AnnAssign):
                hidden.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for number, line in enumerate(text.splitlines(), 1):
        if number not in hidden and not PASSED_OVER.match(line):
            yield line


def find_pairs(files: dict[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of files that share a run of lines of one shape; a file beside itself if it has it twice."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, text in files.items():
        shapes = [find_shape(line) for line in list_lines(name, text)]
        for start in range(len(shapes) - LINES + 1):
            run = tuple(shapes[start : start + LINES])
            if sum(line.split().count("n") for line in run) >= WORDS:
                places[run].append((name, start))
    pairs = set()
    for found in places.values():
        if len(found) <= COMMON:
            for (one, first), (other, second) in combinations(found, 2):
                if one != other or second - first >= LINES:
                    pairs.add((one, other))
    return sorted(pairs)


def test_a_copy_with_other_names_is_a_pair() -> None:
    path = SOURCE / "regard" / "models" / "search" / "beam.py"
    copy = re.sub(r"\b(sentence|tokens|width)", r"other_\1", path.read_text(encoding="utf-8"))
    assert find_pairs({"beam.py": path.read_text(encoding="utf-8"), "copy.py": copy}) == [("beam.py", "copy.py")]


def test_the_source_repeats_itself_little() -> None:
    paths = [path for path in sorted(SOURCE.rglob("*")) if path.suffix in KINDS]
    pairs = find_pairs({str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in paths})
    assert len(pairs) <= ALLOWED, pairs
