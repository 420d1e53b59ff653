"""The command line as a user has it: a real process, its output and its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import main

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
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=800)


def test_list_shows_every_family() -> None:
    done = regard("list")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("additive", "alibi", "documents", "sparsemax", "gumbel-straight"))


def test_explain_gives_formula_reference_plan_reasons_and_cost() -> None:
    done = regard("explain", "additive", "--mask", "causal", "--queries", "1024", "--keys", "1024")
    assert done.returncode == 0
    for words in ("tanh(W q_i + U k_j)", "Bahdanau et al. 2015", "backend stream, because", "8,388,608 pairs"):
        assert words in done.stdout


SENTENCES: list[tuple[tuple[str, ...], str]] = [
    (("explain", "gausian"), "fix: write gaussian"),
    (("explain", "dot", "--mask", "casual"), "fix: write causal"),
    (("explain", "dot", "--backend", "fast"), "backend: got 'fast', expected one of auto, eager"),
    (("explain", "dot", "--queries", "0"), "--queries: got 0, expected at least 1; fix: write --queries 1"),
    (("explain", "additive", "--backend", "sdpa"), "expected one that can compute this: the score has no dot form"),
    (("list", "scores"), "family: got 'scores', expected one of score, bias, mask, normalizer, reading"),
    (("explain", "dot", "--value", "0"), "--value: got 0, expected at least 1; fix: write --value 1"),
    (("explain", "dot", "--dtype", "int8"), "--dtype: got 'int8', expected one of float32, float64, bfloat16"),
    (("explain", "dot", "--dropout", "1"), "--dropout: got 1.0, expected a rate from 0 to below 1; fix: write"),
    (("explain", "dot", "--queries", "many"), 'Invalid value for --queries: unable to convert "many" into int.'),
    (("explain", "dot", "--queris", "3"), "Unknown option: --queris. Did you mean --queries?"),
    (("lst",), 'Unknown command "lst". Did you mean "list"?'),
    (("verify", "nowhere:Score"), "target: got 'nowhere:Score', expected a part of attention"),
    (("verify", "regard.scores:Dott"), "target: got 'regard.scores:Dott', expected a part of"),
    (
        ("verify", "regard.pairs:Pairs"),
        "expected one of regard.Score, regard.Bias, regard.Mask, regard.Normalizer, regard.Reading; fix: subclass one",
    ),
    (("verify", "regard.masks:Window"), "expected a class that needs no argument (Window.__init__() missing 2 req"),
    (("verify", "regard:Causal", "--keys", "0"), "keys: got 0, expected at least 1; fix: name the number of keys"),
    (
        ("demo", "regression", "--output", "/no/such/place/x.png"),
        "No such file or directory: '/no/such/place/x.png'",
    ),
]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
@pytest.mark.parametrize(("arguments", "sentence"), SENTENCES)
def test_what_cannot_be_is_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, to be quick: the next test has one of its own."""
    monkeypatch.setattr(sys, "argv", ["regard", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("regard: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(("arguments", "sentence"), [SENTENCES[0], (("lst",), 'Did you mean "list"?')])
def test_a_user_sees_no_traceback(arguments: tuple[str, ...], sentence: str) -> None:
    done = regard(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


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


def test_help_does_not_wait_for_torch() -> None:
    """Asked of the interpreter itself; how long it took is printed, since other processes share the machine."""
    code = (
        "import sys, time; start = time.perf_counter(); sys.argv = ['regard', '--help']\n"
        "from regard.cli import main\n"
        "main()\n"
        "heavy = {'torch', 'numpy', 'sklearn', 'matplotlib'} & {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(heavy), f'{time.perf_counter() - start:.2f} s')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1]
    print(last)
    assert last.startswith("[] "), done.stdout + done.stderr


def test_list_takes_one_family_and_names_every_part_of_it() -> None:
    done = regard("list", "normalizer")
    assert done.returncode == 0
    for name in ("softmax-plus-one", "entmax-1.5", "local-p", "chunkwise"):
        assert name in done.stdout
    assert "additive" not in done.stdout


def test_verify_finds_a_wrong_gradient(tmp_path: Path) -> None:
    """Values alone would let it pass: the fast derivation is right but for a factor that it hides from autograd."""
    (tmp_path / "mine.py").write_text(
        "from regard import DotForm, DotScore\n"
        "class Hidden(DotScore):\n"
        "    def forward(self, query, key):\n"
        "        return query @ key.transpose(-1, -2)\n"
        "    def dot_form(self, query, key):\n"
        "        return DotForm(query, key.detach())\n"
    )
    done = regard("verify", "mine:Hidden", folder=tmp_path)
    assert done.returncode == 1
    assert "wrong: mine:Hidden" in done.stdout


def test_demo_draws_its_picture(tmp_path: Path) -> None:
    done = regard("demo", "regression", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    picture = (tmp_path / "regard-demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    for kernel in ("average", "gaussian", "learned"):
        assert kernel in done.stdout


def test_a_missing_extra_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text(
        "raise ModuleNotFoundError('No module named matplotlib', name='matplotlib')"
    )
    done = regard("demo", "regression", folder=tmp_path)  # python -m puts the folder first
    assert done.returncode == 2
    assert (
        done.stderr
        == "regard: matplotlib: got no such package, expected it installed; fix: pip install 'regard[plot]'\n"
    )


def test_a_reader_that_has_gone_is_no_error() -> None:
    command = f"{sys.executable} -m regard explain dot | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
