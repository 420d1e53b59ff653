"""What can go wrong between a text file and a translation: one sentence each, exit code 2, nothing lost."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TINY = {
    "vocabulary.kind": "word",
    "model.size": 8,
    "model.recurrent.hidden": 8,
    "model.attention.hidden": 8,
    "measure.most": 2,
    "training.threads": 1,
    "training.stop.steps": 2,
    "training.every.log": 1,
}
FIELDS = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]


Done = tuple[int, str, str]
Regard = Callable[..., Any]


def write(name: str, *lines: str) -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def make_text(pairs: int = 40) -> tuple[str, str]:
    """Return two aligned files of so many pairs."""
    draw = random.Random(2)
    rows = [[draw.choice("abcdef") for _ in range(draw.randint(2, 4))] for _ in range(pairs)]
    return write("t.en", *map(" ".join, rows)), write("t.fr", *(" ".join(row).upper() for row in rows))


def train(*arguments: object) -> tuple[object, ...]:
    return ("train", "translation", *arguments, "--folder", "run", *FIELDS)


def check_refused(done: Done, sentence: str) -> None:
    assert done == (2, "", f"regard: {sentence}\n")
    assert not Path("run").exists()


def test_files_of_different_length_are_refused_with_their_counts(regard: Regard) -> None:
    files = write("a.en", "a", "b", "c"), write("a.de", "A", "B")
    fix = "align them: line i of one must translate line i of the other"
    check_refused(regard(*train(*files)), f"data: got 3 lines in a.en and 2 in a.de, expected equally many; fix: {fix}")


def test_text_that_is_not_utf8_is_refused_with_its_place(regard: Regard) -> None:
    Path("a.en").write_bytes("fine\nhé\n".encode("latin1"))
    fix = "convert it, for example with iconv -f latin1 -t utf-8"
    check_refused(
        regard(*train("a.en", make_text()[1])), f"a.en: got byte 0xe9 in line 2, expected UTF-8 text; fix: {fix}"
    )


def test_an_empty_file_is_refused(regard: Regard) -> None:
    fix = "check the path and the file's origin"
    check_refused(
        regard(*train(write("a.en"), make_text()[1])),
        f"a.en: got an empty file, expected one sentence a line; fix: {fix}",
    )


def test_one_pair_is_refused(regard: Regard) -> None:
    got = "1 pair to train on, validate and test"
    done = regard(*train(write("a.en", "a"), write("a.de", "A")))
    check_refused(
        done, f"data: got {got}, expected at least 3 that differ; fix: add more; a translator needs thousands"
    )


def test_a_vocabulary_larger_than_the_text_allows_is_refused(regard: Regard) -> None:
    done = regard(*train(*make_text()), "--vocabulary.kind", "bpe", "--vocabulary.size", "900")
    assert done.code == 2
    assert done.errors.startswith("regard: vocabulary.size: got 900, expected at most ")
    assert not Path("run").exists()


def test_a_limit_below_every_sentence_is_refused(regard: Regard) -> None:
    fix = "raise the limit to 2 or more"
    done = regard(*train(*make_text()), "--limit", "1")
    check_refused(done, f"limit: got 1, expected at least 2, the shortest of the pairs; fix: {fix}")


def test_empty_lines_and_long_sentences_are_left_out_and_counted(regard: Regard) -> None:
    files = make_text(400)
    for name in files:
        Path(name).write_text(Path(name).read_text() + "\n")
    done = regard(*train(*files), "--limit", "3")
    assert done.code == 0
    assert done.errors == ""
    assert "note: t.en: left out 1 of 401 lines, empty on one side or both\n" in done.output
    assert "pairs, longer than 3 tokens\n" in done.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--preset", "bahdanu"), "fix: write --preset bahdanau"),
        (("--model.droput", "0.1"), "fix: write model.dropout"),
        (("--training.stop.step", "3"), "fix: write training.stop.steps"),
        (("--stop.steps",), "--stop.steps: got nothing after it, expected a value; fix: write --stop.steps followed"),
        (("--stop.steps", "two"), "training.stop.steps: got 'two', expected a whole number or none; fix:"),
        (("--nproc", "0"), "--nproc: got 0, expected a whole number, 1 or more; fix: write --nproc 1"),
        (("--model.dropout", "1.5"), "model.dropout: got 1.5, expected a rate from 0 to below 1; fix: use 0 for none"),
        (("--config", "none.toml"), "config: got no file none.toml, expected a TOML file; fix: check the path"),
        (
            ("third.file",),
            "text: got 3 names, expected a name, or two aligned files; fix: name the file of the sentences, then",
        ),
        (("--vocabulary.joint", "--vocabulary.target.size", "9"), "expected the same as the source if joint=true"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(regard: Regard, arguments: tuple[str, ...], sentence: str) -> None:
    done = regard(*train(*make_text()), *arguments)
    assert done.code == 2
    assert sentence in done.errors
    assert done.errors.count("\n") == 1
    assert not Path("run").exists()


def test_a_file_that_is_not_there_is_named(regard: Regard) -> None:
    fix = "check the path, or set REGARD_DATA to the folder that holds it"
    check_refused(
        regard(*train("no.en", "no.de")), f"data: got no no.en, expected a file or folder that exists; fix: {fix}"
    )


def test_a_run_is_not_written_over(regard: Regard) -> None:
    files = make_text()
    assert regard(*train(*files)).code == 0
    done = regard(*train(*files))
    fix = "regard resume run, or give another folder"
    assert done.errors == f"regard: folder: got run, which holds a run at step 2, expected a new folder; fix: {fix}\n"


def test_damage_to_a_run_is_named_and_nothing_else_is_touched(regard: Regard) -> None:
    assert regard(*train(*make_text())).code == 0
    weights = Path("run/weights.safetensors")
    whole = weights.read_bytes()
    weights.unlink()  # a link to the checkpoint's
    weights.write_bytes(whole[: len(whole) // 2])
    done = regard("show", "run", "a b")
    assert done.code == 2
    assert done.errors.startswith("regard: weights: got run/weights.safetensors (")
    assert done.errors.endswith("fix: use a file that regard wrote, or restore it from a copy\n")
    other = Path("run/checkpoints/000000002/optimizer.safetensors")
    done = regard("show", "run", "a b", "--weights", other)
    assert "expected the weights of this model; fix: use the config.toml of the run that wrote them" in done.errors
    other.write_bytes(b"")
    done = regard("resume", "run")
    assert "got run/checkpoints/000000002 with a optimizer.safetensors that is not the one written" in done.errors


def test_a_run_of_another_version_is_refused(regard: Regard) -> None:
    assert regard(*train(*make_text())).code == 0
    path = Path("run/versions.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    for command in (("resume", "run"), ("evaluate", "run"), ("show", "run", "a")):
        done = regard(*command)
        assert done.code == 2
        assert "got run of format 99, expected format 1; fix: use regard" in done.errors


@pytest.mark.parametrize("command", [("resume", "."), ("evaluate", "."), ("translate", "."), ("average", ".")])
def test_a_folder_that_is_no_run_is_refused(regard: Regard, command: tuple[str, ...]) -> None:
    done = regard(*command)
    assert done.code == 2
    assert (
        "expected a folder that regard train made; fix: check the path, or make a run with regard train" in done.errors
    )


def test_a_run_does_not_go_on_with_other_text(regard: Regard) -> None:
    assert regard(*train(*make_text())).code == 0
    Path("t.en").write_text(Path("t.en").read_text().replace("a", "b"))
    done = regard("resume", "run", "--stop.steps", "4")
    assert done.code == 2
    assert done.errors.startswith("regard: data: got text whose fingerprint is ")
    fix = "bring back the text, the settings and the version of regard, or start a new run"
    assert done.errors.endswith(f"; fix: {fix}\n")


def test_a_run_without_weights_says_how_to_get_some(regard: Regard) -> None:
    assert regard(*train(*make_text())).code == 0
    Path("run/weights.safetensors").unlink()
    done = regard("show", "run", "a")
    sentence = "run: got run, which has no weights yet, expected at least one checkpoint; fix: regard resume run"
    assert done.errors == f"regard: {sentence}\n"
