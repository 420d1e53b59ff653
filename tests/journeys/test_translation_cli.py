"""Translation as a user has it: real processes, from two text files to a picture of where the model looked."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SETTINGS = """
[vocabulary.source]
kind = "word"
[vocabulary.target]
kind = "word"
[model]
size = 12
[model.recurrent]
hidden = 12
[model.attention]
hidden = 12
[learning]
budget = 128
[measure]
most = 5
[training]
threads = 1
keep = 2
[training.optimizer]
rate = 0.01
[training.schedule]
warmup = 10
[training.stop]
steps = 60
[training.every]
log = 3
evaluate = 20
save = 4
"""
ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
FRENCH = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"]


def start(*arguments: object, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "regard", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=environment)


def regard(*arguments: object, folder: Path, given: str = "") -> str:
    """Return the output of a command that succeeds."""
    process = start(*arguments, folder=folder)
    output, errors = process.communicate(given, timeout=800)
    assert process.returncode == 0, errors
    return output


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two aligned files, settings for a tiny model, and a run that was never disturbed."""
    folder, draw = tmp_path_factory.mktemp("translation"), random.Random(1)
    numbers = [[draw.randrange(9) for _ in range(draw.randint(2, 5))] for _ in range(400)]
    for name, words in (("text.en", ENGLISH), ("text.fr", FRENCH)):
        lines = [" ".join(words[number] for number in row) for row in numbers]
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / "tiny.toml").write_text(SETTINGS)
    output = regard(*train("whole"), folder=folder)
    assert "all steps taken at step 60" in output
    assert "now: regard evaluate whole, or: regard translate whole" in output
    return folder


def train(run: str) -> tuple[str, ...]:
    return "train", "translation", "text.en", "text.fr", "--config", "tiny.toml", "--folder", run


def read_contents(run: Path) -> dict[str, Any]:
    """Return all of a run that must not depend on whether it was killed."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, Any] = {"metrics": [{name: line[name] for name in line if name != "seconds"} for line in lines]}
    for path in sorted(run.rglob("*.safetensors")):
        found[str(path.relative_to(run))] = path.read_bytes()
    return found


def wait_for_a_checkpoint(run: Path, process: subprocess.Popen[str]) -> None:
    ended = False
    while not any((run / "checkpoints").glob("0*")):
        assert not ended, process.communicate()
        ended = process.poll() is not None
        time.sleep(0.01)


def test_a_run_killed_and_resumed_ends_with_the_same_bits(place: Path) -> None:
    killed = kill_in_the_middle(place)
    output = regard("resume", killed.name, folder=place)
    assert f"{killed.name}: from step" in output
    assert "all steps taken at step 60" in output
    assert read_contents(killed) == read_contents(place / "whole")


def kill_in_the_middle(place: Path) -> Path:
    """Kill a run after its first checkpoint; on a busy machine it may be done before we notice."""
    for attempt in range(20):
        run = place / f"killed {attempt}"
        process = start(*train(run.name), folder=place)
        wait_for_a_checkpoint(run, process)
        process.kill()
        process.communicate()
        if len(read_contents(run)["metrics"]) < len(read_contents(place / "whole")["metrics"]):
            return run
    pytest.fail("every run was done before it could be killed")


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interruption_saves_and_says_how_to_go_on(place: Path, processes: int) -> None:
    run = f"my run in {processes}"
    process = start(*train(run), "--stop.steps", 1000, "--nproc", processes, folder=place)
    wait_for_a_checkpoint(place / run, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=800)
    assert process.returncode == 130
    assert errors == ""
    assert "interrupted, everything saved at step" in output
    assert output.endswith(f"to go on: regard resume '{run}'\n")


def test_evaluation_comes_with_signatures(place: Path) -> None:
    options = "--beam", 2, "--json", "--output", "translations", "--detokenize", "fr"
    sets = json.loads(regard("evaluate", "whole", *options, folder=place))
    assert sets["test"]["sentences"] == 40
    assert "tok:13a" in sets["test"]["bleu"]["signature"]
    assert sets["test"]["chrf"]["signature"].startswith("nrefs:1")
    assert "detok:fr" in sets["test"]["bleu_detokenized"]["signature"]
    assert 0 <= sets["test"]["exact"] <= 100
    assert len((place / "translations" / "test.txt").read_text().splitlines()) == 40


def test_lines_are_translated_in_order_and_an_empty_one_stays_empty(place: Path) -> None:
    process = start("translate", "whole", "--beam", 1, folder=place)
    text = "one two three four five\n\nnine\none xyzzy\ntwo three\n"
    output, errors = process.communicate(text, timeout=800)
    lines = output.split("\n")
    assert len(lines) == 6
    assert [bool(line) for line in lines] == [True, False, True, True, True, False]
    alone, _ = start("translate", "whole", "--beam", 1, "--batch", 1, folder=place).communicate(text, timeout=800)
    assert alone == output
    assert errors == (
        "regard: line 4: got 'xyzzy', unknown to the vocabulary, expected tokens of the training text; "
        "fix: check the spelling, or train on text that has it\n"
    )


def test_json_has_every_translation_with_its_tokens_and_weights(place: Path) -> None:
    options = "--json", "--n-best", 3, "--beam", 3, "--alignments"
    output = regard("translate", "whole", *options, folder=place, given="one two\n\nthree")
    first, empty, last = map(json.loads, output.splitlines())
    assert empty == {"source": "", "source_tokens": [], "translations": []}
    assert last["source"] == "three"
    assert first["source_tokens"] == ["▁one", "▁two", "</s>"]
    assert len(first["translations"]) == 3
    scores = [one["score"] for one in first["translations"]]
    assert scores == sorted(scores, reverse=True)
    for one in first["translations"]:
        assert len(one["weights"]) == len(one["tokens"])
        assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in one["weights"])


def test_somebody_who_types_gets_an_answer_to_each_line(place: Path) -> None:
    with start("translate", "whole", "--alignments", folder=place) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in ("one two", "", "three"):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert ("\t0-0" in answer or "\t1-0" in answer or "\t2-0" in answer) if line else answer == "\n"
        process.stdin.close()
    assert process.returncode == 0


def test_show_draws_where_the_model_looked(place: Path) -> None:
    assert "picture: map.svg" in regard("show", "whole", "one two three", "--output", "map.svg", folder=place)
    picture = (place / "map.svg").read_text()
    assert all(f">▁{word}</text>" in picture for word in ("one", "two", "three"))


def test_show_writes_a_page_of_every_hypothesis(place: Path) -> None:
    output = regard("show", "whole", "one two three", "--output", "page.html", "--beam", 3, folder=place)
    assert output.endswith("page: page.html\n")
    page = (place / "page.html").read_text()
    assert page.count('"score": -') == 3
    assert '"▁one", "▁two", "▁three"' in page


def test_a_translator_is_asked_as_any_other_task_is(place: Path) -> None:
    answer = json.loads(regard("predict", "whole", "one two", "--json", "--show", "one.svg", folder=place))
    assert answer["source"] == "one two"
    assert answer["text"] == regard("predict", "whole", "one two", folder=place).strip()
    assert ">▁two</text>" in (place / "one.svg").read_text()


def test_an_average_translates_too(place: Path) -> None:
    output = regard("average", "whole", "--count", 2, folder=place)
    assert output.startswith("whole/averaged.safetensors: the mean of steps 60, 56\n")
    assert "test" in regard("evaluate", "whole", "--weights", "averaged", folder=place)


def test_a_training_whose_output_nobody_reads_is_saved(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "regard", "train", "translation", "--data.size=50", "--data.held_out=5"]
    command += ["--model.size=8", "--model.recurrent.hidden=8", "--model.attention.hidden=8", "--training.every.log=1"]
    command += ["--training.stop.steps=100000", "--training.every.evaluate=1", f"--training.folder={tmp_path / 'run'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while "step 1" not in process.stdout.readline():
            assert process.poll() is None
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 130, errors
    wanted = "regard: output: got a reader that has gone, expected one that reads to the end; fix: regard resume"
    assert wanted in errors
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert (tmp_path / "run" / "checkpoints" / f"{steps[-1]:09d}").is_dir()
