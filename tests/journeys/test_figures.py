"""Figures of commands: curves of runs, words in Chinese, and pictures of recordings."""

import json
from pathlib import Path

import pytest
import torch

from regard.cli.dispatch import call_command
from regard.errors import InputError
from regard.inspect.recording import Recording


def write_run(folder: Path, rate: float) -> Path:
    """Write a run folder with metrics whose last line is not complete."""
    folder.mkdir()
    lines = [{"event": "stepped", "step": step, "loss": 3 / (1 + rate * step), "rate": 1e-3} for step in range(1, 30)]
    lines += [{"event": "evaluated", "step": 30, "metrics": {"exact": 50.0, "loss": float("nan")}}]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"event": "step')
    return folder


def test_curves_of_several_runs(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, rate) for name, rate in (("first", 0.1), ("second", 0.3))]
    output = tmp_path / "curves.svg"
    call_command("show", [*map(str, runs), "--curves", "--output", str(output), "--language", "zh"])
    text = output.read_text(encoding="utf-8")
    for word in ("first", "second", "损失", "学习率", "exact", "训练", "验证"):
        assert f">{word}</text>" in text


def test_curves_are_in_the_terminal_if_no_picture_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [write_run(tmp_path / name, rate) for name, rate in (("first", 0.1), ("second", 0.3))]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    call_command("show", [str(runs[0]), "--curves"])
    loss, exact, rate = capsys.readouterr().out.splitlines()
    assert loss.split()[:2] == ["loss", "training"]
    assert loss.rstrip().endswith("2.727 → 0.7692  step 1 → 29")
    assert loss.split()[2].startswith("█▇")
    assert loss.split()[2].endswith("▂▁▁▁▁▁")
    assert exact.split() == ["exact", "validation", "▁", "50", "→", "50", "step", "30", "→", "30"]
    assert rate.split()[:3] == ["learning", "rate", "training"]
    call_command("show", [*map(str, runs), "--curves", "--language", "zh"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[:2]] == [["损失", "训练", "first"], ["损失", "训练", "second"]]
    assert not list(Path().iterdir()), "nothing is written that was not asked for"


def test_curves_of_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"which has no metrics\.jsonl, expected a run folder; fix: name a folder"):
        call_command("show", [str(tmp_path), "--curves", "--output", str(tmp_path / "a.png")])


def test_a_recording_is_titled_by_file_site_and_head_or_shows_all_heads(tmp_path: Path) -> None:
    weights = torch.rand(2, 3, 3).softmax(-1)
    Recording.from_weights({"encoder.0": weights, "encoder.1": weights}, queries="abc", keys="abc").save(
        tmp_path / "seen.safetensors"
    )
    one, every = tmp_path / "one.svg", tmp_path / "every.svg"
    call_command("show", [str(tmp_path / "seen.safetensors"), "encoder.0", "--head", "1", "--output", str(one)])
    assert ">seen · encoder.0 · head 1</text>" in one.read_text()
    call_command("show", [str(tmp_path / "seen.safetensors"), "--all-heads", "--output", str(every), "--title", "all"])
    text = every.read_text()
    assert all(f">{part}</text>" in text for part in ("all", "encoder.0", "encoder.1", "head", "0", "1"))
