"""A new score takes the four steps of CONTRIBUTING.md and no other: they are followed here, in a copy of the tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WRITTEN = '''"""The Chebyshev distance."""

from regard.algebra.entries import list_as
from regard.algebra.scores.base import Score
from regard.algebra.shapes import Keys, Queries, Scores


@list_as("chebyshev")
class Chebyshev(Score):
    r"""How close the query is to the key, by the largest difference.

    $$ s_{ij} = -\\lVert q_i - k_j \\rVert_\\infty $$
    """

    def forward(self, query: Queries, key: Keys) -> Scores:
        return -(query[..., :, None, :] - key[..., None, :, :]).abs().amax(-1)
'''

NAMED = "from regard.algebra.scores.chebyshev import Chebyshev as Chebyshev"

TESTED = """import torch

from regard import Chebyshev
from regard.testing import check_score


def test_the_largest_difference_counts() -> None:
    assert Chebyshev()(torch.tensor([[1.0, 2.0]]), torch.tensor([[4.0, 1.0]])).item() == -3.0


def test_every_backend_agrees() -> None:
    check_score(Chebyshev())
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which the steps have been taken."""
    tree = tmp_path_factory.mktemp("regard")
    hidden = shutil.ignore_patterns("__pycache__", ".*", "node_modules")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=hidden)
    shutil.copy(ROOT / "pyproject.toml", tree)
    scores = tree / "src/regard/algebra/scores"
    (scores / "chebyshev.py").write_text(WRITTEN, encoding="utf-8")
    family = (scores / "__init__.py").read_text(encoding="utf-8")
    last = [line for line in family.splitlines() if line.startswith("from regard.algebra.scores")][-1]
    (scores / "__init__.py").write_text(family.replace(last, f"{last}\n{NAMED}"), encoding="utf-8")
    (tree / "tests/algebra/scores/test_chebyshev.py").write_text(TESTED, encoding="utf-8")
    return tree


def run(tree: Path, *arguments: str) -> str:
    """Return what a command prints in that tree; if it fails, the test does."""
    here = {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=tree, env={**os.environ, **here}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_contributing_names_these_steps() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "One import in `algebra/scores/__init__.py`" in text
    assert "@list_as" in text


def test_its_own_tests_and_the_contracts_pass(tree: Path) -> None:
    files = "algebra/scores/test_chebyshev.py contracts/test_inheritance.py layers/test_attention.py test_import.py"
    chosen = [f"tests/{name}" for name in files.split()]
    printed = run(
        tree, "pytest", "-v", "-n0", "-p", "no:cacheprovider", "-k", "chebyshev or Chebyshev or star", *chosen
    )
    for name in ("test_every_backend_agrees", "test_a_score_", "tests/layers/test_attention.py", "test_a_star_import"):
        assert name in printed


def test_the_command_line_shows_it(tree: Path) -> None:
    assert "by the largest difference" in run(tree, "regard", "list", "score")
    explained = run(tree, "regard", "explain", "chebyshev")
    assert "score chebyshev (Chebyshev)" in explained
    assert "stream" in explained


def test_type_checkers_see_it(tree: Path) -> None:
    (tree / "use.py").write_text("import regard\n\nreveal_type(regard.Chebyshev())\n", encoding="utf-8")
    seen = ["src/regard/__init__.py", *sorted(str(path) for path in (tree / "src/regard/algebra/scores").glob("*.py"))]
    printed = run(tree, "mypy", "--config-file=", "--follow-imports=skip", "use.py", *seen)
    assert 'Revealed type is "regard.algebra.scores.chebyshev.Chebyshev"' in printed
