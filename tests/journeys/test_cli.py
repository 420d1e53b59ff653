"""The command line as a user has it: a real process, its output and its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = """
import torch
from regard import Score

class Manhattan(Score):
    def forward(self, query, key):
        return -(query[..., :, None, :] - key[..., None, :, :]).abs().sum(-1)
"""
WRONG = """
from regard import DotForm, DotScore

class Halved(DotScore):
    def forward(self, query, key):
        return 0.5 * query @ key.transpose(-1, -2)
    def dot_form(self, query, key):
        return DotForm(query, key)
"""


def regard(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "regard", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=300)


def test_list_shows_every_family() -> None:
    done = regard("list")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("additive", "alibi", "documents", "sparsemax", "gumbel-straight"))


def test_explain_gives_formula_reference_plan_reasons_and_cost() -> None:
    done = regard("explain", "additive", "--mask", "causal", "--queries", "1024", "--keys", "1024")
    assert done.returncode == 0
    for words in ("tanh(W q_i + U k_j)", "Bahdanau et al. 2015", "backend stream, because", "8,388,608 pairs"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("explain", "gausian"), "fix: write gaussian"),
        (("explain", "dot", "--mask", "casual"), "fix: write causal"),
        (("explain", "dot", "--backend", "fast"), "backend: got 'fast', expected one of auto, eager"),
        (("explain", "dot", "--queries", "0"), "--queries: got 0, expected at least 1; fix: write --queries 1"),
        (("explain", "additive", "--backend", "sdpa"), "expected one that can compute this: the score has no dot form"),
        (("list", "scores"), "family: got 'scores', expected one of score, bias, mask, normalizer, reading"),
        (("verify", "nowhere:Score"), "target: got 'nowhere:Score', expected a score"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    done = regard(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_verify_accepts_a_score_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RIGHT)
    done = regard("verify", "mine:Manhattan", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agree with the definition" in done.stdout


def test_verify_finds_a_wrong_dot_form(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WRONG)
    done = regard("verify", "mine:Halved", folder=tmp_path)
    assert done.returncode == 1
    assert "wrong: mine:Halved" in done.stdout


def test_help_lists_the_commands() -> None:
    done = regard("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("list", "explain", "verify", "demo", "bench"))
