"""The command line as a user has it: a real process, its output and its exit code."""

import contextlib
import itertools
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

import regard.layers as regard_layers
from regard.algebra import catalog, chinese
from regard.cli import inventory
from regard.cli.commands import app, run_command
from regard.cli.descriptions import describe_family, select_families
from regard.cli.explain import explain
from regard.cli.fields import describe_fields
from regard.cli.formulas import render_formulas
from regard.cli.train import show_help
from regard.errors import InputError
from regard.models.config import PRESETS
from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.tasks import TASKS, import_task
from regard.training.lock import hold_lock

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
    for words in (
        "vᵀ tanh(W qᵢ + U kⱼ)",
        "加性注意力",
        "Bahdanau et al. 2015",
        "backend stream, because",
        "8,388,608 pairs",
    ):
        assert words in done.stdout


SENTENCES: list[tuple[tuple[str, ...], str]] = [
    (("explain", "gausian"), "name: got 'gausian', expected a name that regard list shows; fix: write gaussian"),
    (("explain", "rotery"), "fix: write rotary"),
    (("explain", "束搜"), "fix: write 束搜索"),
    (("explain", "dot", "--mask", "casual"), "fix: write causal"),
    (("explain", "dot", "--backend", "fast"), "backend: got 'fast', expected one of auto, linear, local"),
    (("explain", "dot", "--queries", "0"), "--queries: got 0, expected at least 1; fix: write --queries 1"),
    (("explain", "additive", "--backend", "sdpa"), "expected one that can compute this: the score has no dot form"),
    (("list", "scores"), "family: got 'scores', expected one of score, bias, mask, normalizer, aggregate"),
    (("explain", "dot", "--value", "0"), "--value: got 0, expected at least 1; fix: write --value 1"),
    (("explain", "dot", "--dtype", "int8"), "--dtype: got 'int8', expected one of float32, float64, bfloat16"),
    (("explain", "dot", "--dropout", "1"), "--dropout: got 1.0, expected a rate from 0 to below 1; fix: write"),
    (
        ("explain", "dot", "--queries", "many"),
        "--queries: got 'many', expected a whole number; fix: see regard explain",
    ),
    (
        ("explain", "dot", "--queris", "3"),
        "--queris: got a flag that regard explain does not have, expected one of --ag",
    ),
    (("explain", "dot", "--queris", "3"), "; fix: write --queries"),
    (("explain", "dot", "--zzz", "3"), "; fix: leave it out, or see regard explain --help"),
    (("ask", "--run", "r", "--question", "x"), "; fix: leave it out, or see regard ask --help"),  # not --precision
    (
        ("explain", "dot", "--queries"),
        "--queries: got nothing after it, expected a value; fix: write --queries followed",
    ),
    (
        ("explain", "dot", "--keys", "1", "--keys", "2"),
        "--keys: got it twice, expected it once; fix: leave one of them",
    ),
    (
        ("explain", "dot", "a", "b"),
        "regard explain: got 'a', 'b', which are more than it takes, expected regard explain SC",
    ),
    (
        ("explain",),
        "regard explain: got no SCORE, expected regard explain SCORE; fix: add it, or see regard explain --help",
    ),
    (
        ("list", "mask", "a"),
        "regard list: got 'a', which is more than it takes, expected regard list [FAMILY]; fix: leave",
    ),
    (("evaluate", "--beem", "3"), "--beem: got a flag that regard evaluate does not have"),
    (
        ("caption", "a.png"),
        "regard caption: got no --run, expected regard caption [PHOTO …] --run RUN; fix: add it, or see",
    ),
    (
        ("export", "a", "b", "--format", "onn"),
        "--format: got 'onn', expected one of safetensors, onnx, ct2; fix: write",
    ),
    (("lst",), "command: got 'lst', expected one of list, explain, verify"),
    (("lst",), "; fix: write regard list"),
    (("verify", "nowhere:Score"), "target: got 'nowhere:Score', expected a part of attention"),
    (("verify", "regard.algebra.scores:Dott"), "target: got 'regard.algebra.scores:Dott', expected a part of"),
    (
        ("verify", "regard.algebra.pairs:Pairs"),
        "expected one of regard.Score, regard.Bias, regard.Mask, regard.Normalizer, regard.Aggregate; "
        "fix: subclass one",
    ),
    (
        ("verify", "regard.algebra.masks:Window"),
        "expected a class that needs no argument (Window: got no before, after",
    ),
    (("verify", "regard:Causal", "--keys", "0"), "keys: got 0, expected at least 1; fix: name the number of keys"),
    (
        ("demo", "regression", "--output", "/no/such/place/x.png"),
        "output: got /no/such/place/x.png, expected a folder that exists; fix: make /no/such/place first\n",
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
        run_command()
    assert left.value.code == 2
    errors = capsys.readouterr().err
    assert sentence in errors
    assert errors.startswith("regard: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(("arguments", "sentence"), [SENTENCES[0], (("lst",), "fix: write regard list")])
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


def test_every_entry_has_a_line_of_chinese() -> None:
    """Of characters, not of names alone; `regard list` and `explain` print it."""
    entries = [entry for family in select_families() for entry in describe_family(family)]
    assert [entry.name for entry in entries if not re.search("[\u4e00-\u9fff]{2}.*。$", entry.chinese)] == []
    assert set(chinese.LINES) == set(catalog.FAMILIES)
    assert [entry.name for entry in entries if "\\" in render_formulas(entry.text)] == []
    assert "稀疏" in regard("list", "normalizer").stdout


def test_the_catalog_has_every_layer_model_and_task() -> None:
    targets = {entry.target.removeprefix("regard.layers:") for entry in inventory.FAMILIES["layer"].values()}
    assert targets == set(regard_layers.__all__)
    assert {*ENCODERS, "pyramidal", "grid"} == set(inventory.FAMILIES["encoder"])
    assert {*DECODERS, "luong-feeding"} == set(inventory.FAMILIES["decoder"])
    assert set(PRESETS) == set(inventory.FAMILIES["preset"])
    assert set(TASKS) == set(inventory.FAMILIES["task"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transformer", "decoder transformer (TransformerDecoder)"),
        ("多头注意力", "layer attention (Attention)"),
        ("注意力汇聚", "layer pooling (Pooling)"),
        ("上下文向量", "decoder plain (FixedContext)"),
        ("局部注意力", "layer local-attention (LocalAttention)"),
        ("束搜索", "search beam (beam_search)"),
        ("captioning", "task captioning (CaptioningDefinition)"),
        ("有效长度", "mask lengths (Lengths)"),
    ],
)
def test_layers_and_models_are_explained_by_any_name(
    name: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    explain(name)
    assert expected in capsys.readouterr().out


def test_a_layer_is_not_planned() -> None:
    with pytest.raises(InputError, match="gated-heads: got flags of a call for a layer, expected a score"):
        explain("gated-heads", mask="causal")


def test_no_flag_is_cut_and_no_line_is_too_long_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for task in TASKS:
        show_help(task, import_task(task))
        lines = capsys.readouterr().out.splitlines()
        flags = {line.split()[0] for line in lines if line.startswith("--")}
        assert {f"--{field.name}" for field in describe_fields(import_task(task).default)} <= flags
        table = [line for line in lines if line.startswith(("--", "  "))]
        assert max(map(cell_len, table)) <= 80


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_help_fits_into_80_columns_and_breaks_lines_only_where_they_are_full(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):  # a console of its own: the app keeps the first one, of any width
        app([command, "--help"], result_action="return_value", console=Console(width=80, color_system=None))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert max(map(cell_len, lines)) <= 80
    for line, below in itertools.pairwise(line.strip("│").rstrip() for line in lines):
        start = len(below) - len(below.lstrip())
        continues = line.startswith(" ") and start > 6 and line[start - 1 : start] == " " and line[start:].strip()
        assert not continues or cell_len(f" {below.split()[0]}") + cell_len(line) >= 77, line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bench", "--seconds", "-1"), "--seconds: got -1.0, expected a number above 0; fix: write --seconds 15"),
        (("serve", "empty"), "recording: got empty (Error while deserializing header: header too small)"),
        (("train", "vqa", "folder"), "data.questions: got no questions.json in "),
        (("train", "memory", "--folder", "taken"), "folder: got taken, which holds other files, expected a new folder"),
        (("explain", "dot", "--mask", "causl"), "mask: got 'causl', expected one of full, causal"),
        (("runs", "empty"), "folder: got no folder empty, expected a folder with runs; fix: name the folder"),
    ],
)
def test_what_a_newcomer_gets_wrong_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    Path("folder").mkdir()
    Path("taken").mkdir()
    Path("taken/letter.txt").touch()
    done = regard(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"regard: {sentence}")


def test_a_terminal_gets_lines_that_break_between_words() -> None:
    """A file gets whole lines, for other programs."""
    command = [sys.executable, "-m", "regard", "explain", "additive"]
    shown = run_in_terminal(command, columns=40)
    assert all(cell_len(line) <= 40 for line in shown.splitlines())
    whole = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert max(map(len, whole.splitlines())) > 120
    assert {word for word in shown.split() if word.isascii()} <= set(whole.split())
    error = run_in_terminal([*command[:3], "explain", "gausian"], columns=40)
    assert all(cell_len(line) <= 40 for line in error.splitlines())
    assert " ".join(error.split()).endswith("fix: write gaussian")


def run_in_terminal(command: list[str], columns: int) -> str:
    """Return what a command prints in a terminal of this width, without colors."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "CI")}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    content = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while part := os.read(ours, 65536):
            content += part
    process.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", content.decode()).replace("\r\n", "\n")


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
    assert regard("demo", "regression", folder=tmp_path).returncode == 0
    assert not list(tmp_path.iterdir())
    done = regard("demo", "regression", "--output", "regard-demo.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    picture = (tmp_path / "regard-demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    for kernel in ("average", "gaussian", "learned"):
        assert kernel in done.stdout


def test_runs_are_listed_with_what_is_known_of_them(tmp_path: Path) -> None:
    fields = (
        "--stop.steps",
        "3",
        "--every.evaluate",
        "2",
        "--data.items",
        "40",
        "--data.held_out",
        "4",
        "--threads",
        "1",
    )
    done = regard("train", "inversion", "sort", *fields, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with next(tmp_path.glob("runs/*/metrics.jsonl")).open("a") as metrics:
        metrics.write("[" * 100_000 + '\n{"event": "stepp')  # nested too deep, and a line that is being written
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "versions.json").write_text("{}")
    lines = [json.loads(line) for line in regard("runs", "--json", folder=tmp_path).stdout.splitlines()]
    good = next(line for line in lines if line["task"])
    assert (good["task"], good["data"], good["step"], good["training"]) == ("inversion", "sort", 3, False)
    assert good["goal"] == "exact"
    assert good["best"] is not None
    assert 0 <= good["age"] < 600
    assert next(line for line in lines if not line["task"])["error"].startswith("run: got runs/damaged")
    with hold_lock(tmp_path / good["run"]):
        assert "training now" in regard("runs", good["run"], folder=tmp_path).stdout
    assert "not read: runs/damaged: run: got runs/damaged" in regard("runs", folder=tmp_path).stdout
    meant = regard("resume", "runs/sotr", folder=tmp_path)
    assert meant.returncode == 2
    expected = "regard: run: got runs/sotr, which is not there, expected a folder that regard train made; fix: write"
    assert meant.stderr == f"{expected} {good['run']}, or see them all with regard runs runs\n"
    none = regard("runs", "elsewhere", folder=tmp_path)
    assert none.stderr.startswith("regard: folder: got no folder elsewhere, expected a folder with runs; fix: name the")


@pytest.mark.parametrize(
    ("command", "task", "offered", "left_out"),
    [
        ("predict", "next-vector", ("--steps", "--precision"), ("--engine",)),
        ("predict", "inversion", ("--precision",), ("--engine", "--steps")),
        ("evaluate", "inversion", ("--precision",), ("--engine", "--steps")),
        ("show", "inversion", ("--curves",), ("--engine",)),
        ("show", "translation", ("--curves", "--engine"), ()),
        ("evaluate", "translation", ("--engine",), ("--steps",)),
    ],
)
def test_help_offers_what_applies_to_the_run(
    tmp_path: Path, command: str, task: str, offered: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    (tmp_path / "config.toml").write_text(f'task = "{task}"\n')
    (tmp_path / "versions.json").write_text('{"format": 1}')
    shown = regard(command, ".", "--help", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert all(f" {flag} " in shown.stdout for flag in offered)
    assert not any(flag in shown.stdout for flag in left_out)


def test_show_says_which_attention_it_is_and_writes_nothing(tmp_path: Path) -> None:
    fields = ("--stop.steps", "1", "--data.items", "40", "--data.held_out", "4", "--threads", "1", "--folder", "run")
    assert regard("train", "inversion", *fields, folder=tmp_path).returncode == 0
    shown = regard("show", "run", "abc", folder=tmp_path)
    assert "attention of the decoder over the sequence; █ is 1, the largest weight is 0." in shown.stdout
    positions = regard("show", "positions", "--length", "5", "--dim", "8", folder=tmp_path)
    assert "blank is -1, █ is 1" in positions.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_missing_extra_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text(
        "raise ModuleNotFoundError('No module named matplotlib', name='matplotlib')"
    )
    done = regard("demo", "regression", "--output", "x.png", folder=tmp_path)  # python -m puts the folder first
    assert done.returncode == 2
    assert (
        done.stderr
        == "regard: matplotlib: got no such package, expected it installed; fix: pip install 'regard[plot]'\n"
    )


def test_a_reader_that_has_gone_is_no_error() -> None:
    command = f"{sys.executable} -m regard explain dot | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
