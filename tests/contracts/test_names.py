"""Functions are named by verbs, not by what is done to their result (CONTRIBUTING: names and sentences)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 30
# Participles that do not end in -ed. A word that is an infinitive too (read, put, split) is a verb.
IRREGULAR = {"begun", "built", "chosen", "done", "drawn", "found", "given", "gone", "heard", "hidden", "kept", "known"}
IRREGULAR |= {"laid", "left", "lost", "made", "meant", "seen", "sent", "shown", "spoken", "taken", "told", "written"}
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed"}  # end in -ed by themselves


def list_functions(folder: str) -> list[str]:
    """Return the names of all functions of a folder, without properties: those are facts."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                found.append(node.name)
    return found


def is_bare_participle(name: str) -> bool:
    """Return whether a name is one participle and nothing else.

    >>> [is_bare_participle(name) for name in ("chosen", "_counted", "choose_key", "seed")]
    [True, True, False, False]
    """
    word = name.strip("_")
    return "_" not in word and word not in VERBS and (word.endswith("ed") or word in IRREGULAR)


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_functions_are_named_by_verbs(folder: str) -> None:
    found = list_functions(folder)
    participles = [name for name in found if is_bare_participle(name)]
    assert len(found) > 300
    assert len(participles) <= MOST, participles
