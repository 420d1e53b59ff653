"""The walk that every task takes by command: trained, cut off and resumed, evaluated, asked, drawn."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard import InputError, load
from regard.tasks import build_task, read_config
from regard.tasks.prediction import OTHER_NAMES
from regard.training import Stepped, train

Regard = Callable[..., Any]


def to_flags(values: Mapping[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def walk(regard: Regard, name: str, *data: str, **options: Any) -> dict[str, dict[str, float]]:
    """Train into `run` with `options["fields"]`, take every other step, and return what the evaluation printed."""
    done = regard("train", name, *data, *options.get("more", ()), "--folder", "run", *to_flags(options["fields"]))
    assert done.code == 0, done.errors
    assert "now: regard evaluate run, or: regard " in done.output
    check_units(Path("run"), done.output)
    assert json.loads(regard("runs", "run", "--json").output)["data"]
    check_exact_resume(Path("run"), options["cut_at"])
    item = options.get("item", ())
    evaluated = regard("evaluate", "run", "--json")
    assert evaluated.code == 0, evaluated.errors
    reports: dict[str, dict[str, float]] = json.loads(evaluated.output)
    table = regard("evaluate", "run").output
    assert all(metric in table for report in reports.values() for metric in report)
    assert build_task(read_config(Path("run")), Path("run")).units in table
    answered = regard("predict", "run", *item, "--json", "--show", "asked.png")
    assert answered.code == 0, answered.errors
    json.loads(answered.output)
    check_loaded(item, regard("predict", "run", *item).output)
    shown = regard("show", "run", *item, "--output", "shown.svg")
    assert (shown.code, shown.errors) == (0, "")
    assert shown.output.endswith("picture: shown.svg\n")
    assert Path("asked.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in Path("shown.svg").read_text()
    return reports


def check_units(run: Path, printed: str) -> None:
    """What each metric is measured in is said before training and beside the evaluation."""
    units = build_task(read_config(run), run).units
    assert f"note: {units}\n" in printed
    named = {name for said in units.split("; ") for name in said.partition(": ")[0].replace(" to ", ", ").split(", ")}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics = {name for line in lines if line["event"] == "evaluated" for name in line["metrics"]}
    assert metrics - {"bleu-2", "bleu-3"} <= named


def check_loaded(item: Sequence[object], printed: str) -> None:
    """Python answers what the command does, with the picture and the weights."""
    model = load("run")
    prediction = model.predict(*item)
    assert f"{prediction}\n" == printed
    assert prediction.picture.axes
    assert prediction.map is not None
    assert prediction.weights.shape == (len(prediction.map.rows), len(prediction.map.columns))
    prediction.save("from_python.html")
    assert "<html" in Path("from_python.html").read_text()
    check_names(model, prediction)
    with pytest.raises(
        InputError, match=r"item: got a list of 2, expected a text, a number or a file; fix: call it once"
    ):
        model.predict(["a", "b"])


def check_names(model: Any, prediction: Any) -> None:
    """A name that others have is answered with ours, which is there."""
    for name in " ".join(OTHER_NAMES.values()).split():
        with pytest.raises(AttributeError, match=r"; fix: write prediction\.(\w+)") as caught:
            getattr(prediction, name)
        assert hasattr(prediction, str(caught.value).rpartition(".")[2])
    with pytest.raises(AttributeError, match=r"fix: write model\.predict\(…\)\.weights"):
        _ = model.attention_weights
    assert not hasattr(prediction, "nothing_like_it")


def check_exact_resume(run: Path, cut_at: int) -> None:
    """Train the same run again, cut it off after step `cut_at` and resume it: every bit must be the same."""
    config = read_config(run)
    again = run.with_name(f"{run.name}-again")
    config = replace(config, training=replace(config.training, folder=again))
    events = train(build_task(config, None), config)
    for event in events:
        if isinstance(event, Stepped) and event.step >= cut_at:
            break
    events.close()  # type: ignore[attr-defined]  # a generator
    assert read_contents(again) != read_contents(run)
    for _ in train(build_task(config, again), config, resume=again):
        pass
    assert read_contents(again) == read_contents(run)


def read_contents(run: Path) -> dict[str, Any]:
    """Return all of a run that must not depend on whether it was cut off."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, Any] = {"metrics": [{name: line[name] for name in line if name != "seconds"} for line in lines]}
    for path in sorted(run.rglob("*.safetensors")):
        found[str(path.relative_to(run))] = path.read_bytes()
    return found
