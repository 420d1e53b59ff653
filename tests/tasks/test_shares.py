"""Held-out data in shares, as several processes measure it: a share may be empty, or hold nothing that can be used."""

from pathlib import Path

import pytest
import torch

from regard.errors import InputError
from regard.tasks import TASKS, kit
from regard.training import Part, train
from regard.training.evaluation import ONE

NOTHING = Part(10**6, 10**6 + 1)


@pytest.mark.parametrize("name", TASKS)
def test_an_empty_share_counts_as_zero(name: str) -> None:
    """A share of one item is what training rehearses with before its first step."""
    package = kit(name)
    task = package.task(package.configured(None, (), {}))
    model = task.model().eval()
    with torch.no_grad():
        nothing, one = task.measure(model, NOTHING), task.measure(model, ONE)
    assert not any(nothing.values())
    assert task.goal.metric in task.metrics({key: nothing.get(key, 0.0) + value for key, value in one.items()})


def pairs(folder: Path, sources: list[str]) -> list[str]:
    """Parallel text whose validation pairs are these."""
    for part, lines in (("train", ["a b", "b a", "a", "b"] * 5), ("valid", sources), ("test", ["a b"])):
        for language in ("xx", "yy"):
            (folder / f"{part}.{language}").write_text("".join(f"{line}\n" for line in lines))
    return [str(folder)]


SMALL = {
    "data.source": "xx",
    "data.target": "yy",
    "learning.limit": "4",
    "training.stop.steps": "2",
    "training.stop.epochs": "none",
    "measure.beam": "1",
    "model.size": "8",
}


def test_a_share_without_a_pair_within_the_limit_counts_as_zero(tmp_path: Path) -> None:
    package = kit("translation")
    config = package.configured(None, pairs(tmp_path, ["a b", "a b " * 9, "b", "b a " * 9]), SMALL)
    task = package.task(config)
    model = task.model().eval()
    with torch.no_grad():
        shares = [task.measure(model, Part(rank, 3)) for rank in range(3)]
        whole = task.measure(model, Part())
    assert [share["tokens"] for share in shares] == [3.0, 2.0, 0.0]
    assert sum(share["tokens"] for share in shares) == whole["tokens"]
    assert sum(share["surprise"] for share in shares) == pytest.approx(whole["surprise"])


def test_validation_without_a_pair_within_the_limit_is_told_before_the_first_step(tmp_path: Path) -> None:
    package = kit("translation")
    values = SMALL | {"training.folder": str(tmp_path / "run")}
    config = package.configured(None, pairs(tmp_path, ["a b " * 9]), values)
    steps = []
    with pytest.raises(
        InputError, match=r"^limit: got 4, expected at least 1[0-9], the shortest of the pairs; fix: raise"
    ):
        steps.extend(event for event in train(package.task(config), config) if type(event).__name__ == "Stepped")
    assert not steps


@pytest.mark.parametrize("beam", ["1", "3"])
def test_weights_that_are_no_numbers_are_told_where_quality_is_measured(tmp_path: Path, beam: str) -> None:
    package = kit("translation")
    task = package.task(package.configured(None, pairs(tmp_path, ["a b", "b a"]), SMALL | {"measure.beam": beam}))
    model = task.model().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
        with pytest.raises(InputError, match=r"^model: got scores that are not finite, expected finite numbers; fix: "):
            task.quality(model, task.text.validation)
