"""The clock of the machine may go back: durations are measured by another one, which does not."""

import re
import time
from itertools import count
from pathlib import Path

import pytest
from toy_training import Toy, collect_events, make_toy_config, read_contents

from regard.training import Finished, Stepped, train

SOURCE = Path(__file__).parents[2] / "src" / "regard"
# What is written down for people, and ages of files, which are never below 0.
ALLOWED = {
    "cli/run_list.py",
    "compute/kernels/native/cache.py",
    "tasks/data/prepared_folder.py",
    "training/lock.py",
    "training/run_folder.py",
    "web/metrics.py",
}


def test_the_clock_on_the_wall_is_asked_for_ages_and_dates_only() -> None:
    asks = re.compile(r"time\.time\(|datetime\.now\(|time\.localtime\(")
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if asks.search(path.read_text("utf-8"))}
    assert found == ALLOWED


def test_a_clock_that_goes_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collect_events(tmp_path / "whole")
    clock = count(2e9, -3600.0)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    config = make_toy_config(tmp_path / "run")
    stop = iter([False] * 5 + [True] * 100)
    ended = list(train(Toy(config), config, stop=lambda: next(stop)))[-1]
    assert isinstance(ended, Finished)
    assert ended.reason == "interrupted"
    resumed = collect_events(tmp_path / "run", resume=True)
    assert all(event.seconds >= 0 for event in resumed if isinstance(event, Stepped))
    assert read_contents(tmp_path / "run") == read_contents(tmp_path / "whole")
    assert not list((tmp_path / "run").glob(".lock"))
