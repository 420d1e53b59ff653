"""Odd input and output: marks, tabs, pipes, closed and narrow streams. One sentence each, exit code 2, nothing lost."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.cli.input import LINE
from regard.cli.translate import format_pharaoh
from regard.datasets.text import clean
from regard.tasks.translation import TranslationHypothesis

Regard = Callable[..., Any]
WORDS = ("eins zwei", "zwei drei", "drei éclair", "vier")
FIELDS = [
    f"--{name}={value}"
    for name, value in {
        "vocabulary.kind": "word",
        "model.size": 8,
        "model.recurrent.hidden": 8,
        "model.attention.hidden": 8,
        "measure.most": 2,
        "training.threads": 1,
        "training.stop.steps": 2,
    }.items()
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of few words, with a mark and tabs in its text."""
    from regard.cli.commands import run_command

    place = tmp_path_factory.mktemp("odd")
    sources = [f"{WORDS[number % 4]} {WORDS[number // 4 % 4]} {'vier ' * (number // 16)}" for number in range(64)]
    (place / "t.de").write_text("\ufeff" + "".join(f" {line}\t\n" for line in sources), encoding="utf-8")
    (place / "t.fr").write_text("".join(f"{line.upper()}\n" for line in sources), encoding="utf-8")
    before = sys.argv
    sys.argv = ["regard", "train", "translation", str(place / "t.de"), str(place / "t.fr"), "--folder"]
    sys.argv += [str(place / "run"), *FIELDS]
    try:
        run_command()
    finally:
        sys.argv = before
    return place / "run"


@contextmanager
def replace_stream(name: str, stream: Any) -> Iterator[None]:
    before = getattr(sys, name)
    setattr(sys, name, stream)
    try:
        yield
    finally:
        setattr(sys, name, before)


@contextmanager
def give_input(content: bytes, folder: Path) -> Iterator[None]:
    """Standard input with this content."""
    (folder / "input").write_bytes(content)
    with (folder / "input").open() as stream, replace_stream("stdin", stream):
        yield


@contextmanager
def open_narrow(path: Path, encoding: str) -> Iterator[None]:
    with path.open("w", encoding=encoding) as stream, replace_stream("stdout", stream):
        yield


def test_what_is_asked_is_cleaned_as_what_was_learned(regard: Regard, run: Path, tmp_path: Path) -> None:
    with give_input(b"eins zwei\n", tmp_path):
        plain = regard("translate", run, "--json")
    assert plain.errors == ""
    with give_input("\ufeff\teins\t zwei \r\n".encode(), tmp_path):
        odd = regard("translate", run, "--json")
    assert odd == plain
    assert json.loads(plain.output)["source_tokens"] == ["▁eins", "▁zwei", "</s>"]
    asked = regard("predict", run, "--json", "\ufeff\teins\t zwei ")
    assert json.loads(asked.output)["source"] == "eins zwei"
    shown = [regard("show", run, text).output for text in ("eins zwei", "\ufeffeins\tzwei\t")]
    assert shown[0] == shown[1]


def test_the_page_cleans_too() -> None:
    from regard.inspect.display.fields import Fields
    from regard.web.limits import Limits
    from regard.web.translation import SourceText

    assert SourceText.from_fields(Fields({"text": "\ufeff\teins\t zwei "}), Limits()).text == "eins zwei"


@pytest.mark.parametrize("text", ["a\tb", "\ufeffa", " a  b ", "\u00a0\ufeff a", "a\u00a0b", "a\u2028b", "", "\ufeff"])
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert clean(text).replace(" ", "").replace("\u00a0", "") == re.sub(r"[ \t\ufeff\u00a0]", "", text)


def test_alignments_never_name_the_end(regard: Regard, run: Path, tmp_path: Path) -> None:
    with give_input(b"eins\neins zwei\n" * 4, tmp_path):
        done = regard("translate", run, "--alignments")
    for line, words in zip(done.output.splitlines(), [1, 2] * 4, strict=True):
        text, _, pairs = line.partition("\t")
        assert all(int(pair.split("-")[0]) < words for pair in pairs.split()), line
        assert bool(pairs) == bool(text.split())


def test_a_word_that_attends_to_the_end_most_is_aligned_with_the_next_best() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.1, 0.6], [0.0, 0.0, 1.0]])
    found = TranslationHypothesis("a b", 0.0, 0.0, ["a", "b"], weights, (5, 6))
    assert format_pharaoh(found) == "1-0 0-1"
    assert format_pharaoh(found._replace(weights=weights[:, 2:])) == ""


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"eins\n\xff\xfee\x00\n", "input: got UTF-16 text, expected UTF-8 text; fix: convert it, for example"),
        (b"eins\nzw\xe9i\n", "input: got byte 0xe9 in line 2, expected UTF-8 text; fix: convert it, for example"),
        (b"eins\nzw\x00i\n", "input: got byte 0x00 in line 2, expected UTF-8 text; fix: give a text file, or"),
        (b"eins\n\xed\xa0\x80\n", "input: got byte 0xed in line 2, expected UTF-8 text"),
        (
            b"eins\n" + b"a " * LINE + b"\nvier\n",
            "input: got more than 1,048,576 bytes in line 2, expected a",
        ),
        (
            b"eins\n" + b"a " * (LINE // 2) + b"b",
            "input: got more than 1,048,576 bytes in line 2, expected a",
        ),
    ],
    ids=["utf-16", "latin-1", "nul", "surrogate", "long line", "long last line"],
)
def test_a_bad_line_is_one_sentence_and_those_before_it_are_translated(
    regard: Regard, run: Path, tmp_path: Path, content: bytes, sentence: str
) -> None:
    with give_input(b"eins\n", tmp_path):
        before = regard("translate", run)
    with give_input(content, tmp_path):
        done = regard("translate", run)
    assert (done.code, done.output) == (2, before.output)
    assert done.errors.startswith(f"regard: {sentence}")
    assert done.errors.count("\n") == 1


def test_empty_lines_no_lines_and_no_last_end(regard: Regard, run: Path, tmp_path: Path) -> None:
    for content, count in ((b"", 0), (b"\n", 1), (b"\r\n\r\neins", 3), ("\ufeff\n".encode(), 1)):
        with give_input(content, tmp_path):
            done = regard("translate", run)
        assert (done.code, done.errors, done.output.count("\n")) == (0, "", count)


def test_a_closed_input_is_one_sentence(regard: Regard, run: Path) -> None:
    with replace_stream("stdin", None):
        done = regard("translate", run)
    sentence = "input: got standard input, which is closed, expected text on standard input"
    assert (done.code, done.output) == (2, "")
    assert done.errors.startswith(f"regard: {sentence}; fix: ")


def test_an_output_of_few_characters_is_one_sentence_and_nothing_is_lost(
    regard: Regard, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.tasks.translation import Translator

    monkeypatch.setattr(Translator, "translate", lambda self, texts, *_, **__: [make_result(text) for text in texts])
    with give_input("eins\ndrei éclair\n".encode(), tmp_path), open_narrow(tmp_path / "out", "ascii"):
        done = regard("translate", run)
    assert done.code == 2
    wanted = (
        "output: got ascii, which has no '\\xe9', expected an encoding for all text; fix: set PYTHONIOENCODING=utf-8"
    )
    assert done.errors == f"regard: {wanted}\n"
    assert (tmp_path / "out").read_text() == "eins\n"
    with give_input("drei éclair\n".encode(), tmp_path), open_narrow(tmp_path / "out", "ascii"):
        assert regard("translate", run, "--json").code == 0
    assert json.loads((tmp_path / "out").read_text())["translations"][0]["text"] == "drei éclair"


def make_result(text: str) -> Any:
    from regard.tasks.translation import TranslationHypothesis, TranslationResult

    return TranslationResult([text], [TranslationHypothesis(text, 0.0, 0.0, [text], None, (4,))], (4,))


@pytest.mark.parametrize("command", [("data",), ("list",), ("explain", "additive"), ("--help",)])
def test_what_people_read_is_written_in_any_encoding(regard: Regard, tmp_path: Path, command: tuple[str, ...]) -> None:
    with open_narrow(tmp_path / "out", "ascii"):
        done = regard(*command)
    assert (done.code, done.errors) == (0, "")
    assert (tmp_path / "out").read_text()


def test_words_that_are_no_text_are_one_sentence(regard: Regard, run: Path) -> None:
    for command in (("predict", run, "caf\udce9"), ("show", run, "caf\udce9")):
        done = regard(*command)
        assert done.code == 2
        assert "half a character (U+DCE9) at position 4, expected UTF-8 text; fix: type it" in done.errors


def list_odd_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield files that are not text, and the message for each."""
    os.mkfifo(folder / "pipe")
    yield folder / "pipe", "pipe, which is a pipe or a device, expected a file; fix: write its content to a file first"
    yield Path("/dev/zero"), "/dev/zero, which is a pipe or a device, expected a file; fix: write its content"
    contents = {
        "empty": (b"", "an empty file, expected one sentence a line"),
        "mark": ("\ufeff\n".encode(), "an empty file, expected one sentence a line"),
        "wide": ("eins\tun\n".encode("utf-16"), "UTF-16 text, expected UTF-8 text"),
        "wide_le": ("eins\tun\n".encode("utf-16-le"), "byte 0x00 in line 1, expected UTF-8 text"),
        "binary": (bytes(range(256)) * 9, "byte 0x00 in line 1, expected UTF-8 text"),
        "cut.gz": (gzip.compress(b"eins\tun\n" * 99)[:30], "a damaged gzip file"),
        "half": (b"eins\t\xed\xa0\x80\n", "byte 0xed in line 1, expected UTF-8 text"),
    }
    for name, (content, sentence) in contents.items():
        (folder / name).write_bytes(content)
        yield folder / name, sentence


def test_a_file_that_is_no_text_is_one_sentence_for_every_command(regard: Regard, run: Path, tmp_path: Path) -> None:
    for path, sentence in list_odd_files(tmp_path):
        for command in (
            ("train", "translation", path, path, "--folder", "new"),
            ("evaluate", run, path, path),
            ("train", "translation", path, "--folder", "new"),
        ):
            done = regard(*command)
            assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1), (path, done)
            assert sentence in done.errors
            assert not Path("new").exists()


@pytest.mark.parametrize("task", ["regression", "next-vector", "reading", "digits", "speech", "captioning", "vqa"])
def test_a_pipe_in_the_place_of_data_is_one_sentence_for_every_task(regard: Regard, task: str, tmp_path: Path) -> None:
    for name in ("pipe", "pipe.csv", "pipe.npy", "pipe.zip"):
        os.mkfifo(tmp_path / name)
        done = regard("train", task, tmp_path / name, "--folder", "new")
        assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1), done
        assert "expected " in done.errors


def test_whoever_stops_reading_hears_nothing_more(run: Path, tmp_path: Path) -> None:
    """The real command: `| head -1`, an input that is closed, an output without room."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    start = f"{sys.executable} -m regard"
    (tmp_path / "text").write_text("eins zwei\n" * 2000)
    shell = f"""
        {start} translate {run} < {tmp_path}/text | head -1 > {tmp_path}/first; echo ${{PIPESTATUS[0]}}
        {start} list | head -0; echo ${{PIPESTATUS[0]}}
        {start} translate {run} <&-; echo $?
        {start} list > /dev/full; echo $?
        {start} list >&-; echo $?
    """
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=environment, timeout=800)
    assert done.stdout.split() == ["0", "1", "2", "2", "2"]  # rich ends a table that nobody reads with 1
    errors = done.stderr.splitlines()
    assert len(errors) == 3, done.stderr
    assert errors[0].startswith("regard: input: got standard input, which is closed, expected text")
    assert "No space left on device" in errors[1]
    assert errors[2].startswith("regard: output: got standard output, which is closed, expected somewhere")
    assert (tmp_path / "first").read_text().count("\n") == 1


def test_lines_come_as_they_are_typed() -> None:
    """Nobody waits for a full batch: a line is answered before the next is typed."""
    from regard.cli.input import read_lines

    out, into = os.pipe()
    lines = read_lines(out, 64)
    for text in ("eins", "zwei"):
        os.write(into, f"{text}\n".encode())
        assert next(lines) == [text]
    os.write(into, b"dr")
    os.write(into, b"ei")
    os.close(into)
    assert [line for some in lines for line in some] == ["drei"]
    os.close(out)


DEEP_TOML = {
    "lists": "a = " + "[" * 100_000,
    "tables": "a = " + "{a = " * 100_000,
    "dotted key": "a." * 20_000 + "a = 1",
    "dotted table": "[" + "a." * 20_000 + "a]",
}


@pytest.mark.parametrize("kind", DEEP_TOML)
def test_a_configuration_that_is_nested_too_deep_is_one_sentence(regard: Regard, kind: str) -> None:
    Path("deep.toml").write_text(DEEP_TOML[kind], encoding="utf-8")
    done = regard("train", "next-vector", "--config", "deep.toml", "--folder", "run")
    assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1)
    assert done.errors.startswith("regard: config: got deep.toml (")
    assert ", expected a TOML file; fix: correct that place" in done.errors


@pytest.mark.parametrize("name", ["config.toml", "versions.json", "vocabulary/source.json"])
@pytest.mark.parametrize("bracket", "[{")
def test_a_run_whose_files_are_nested_too_deep_is_one_sentence(
    regard: Regard, run: Path, tmp_path: Path, name: str, bracket: str
) -> None:
    shutil.copytree(run, tmp_path / "deep")
    text = {"[": "[", "{": '{"a":'}[bracket] * 100_000
    (tmp_path / "deep" / name).write_text(f"a = {text}" if name.endswith("toml") else text, encoding="utf-8")
    for command in (("translate", "deep"), ("predict", "deep", "eins"), ("resume", "deep")):
        with give_input(b"eins\n", tmp_path):
            done = regard(*command)
        assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1), done
        assert ", expected " in done.errors
        assert "; fix: " in done.errors
