"""Which weights are called best, and what is said when the goal did not choose them."""

from pathlib import Path

import pytest
import torch
from toy_training import Toy, collect_events, make_toy_config

from regard.training import Evaluated, Goal, Noted, average_checkpoints, find_checkpoints, read_safetensors, train
from regard.training.checkpoint import rank_checkpoints, read_tensors


class ScoredTask(Toy):
    """A task with the metrics that it is given, one evaluation after the other."""

    goal = Goal("bleu", "higher")
    bleu: tuple[float, ...] = (0.0,) * 5
    losses: tuple[float | None, ...] = (3.0, 2.0, 1.0, 1.5, 2.5)

    def metrics(self, sums: dict[str, float]) -> dict[str, float]:
        self.count = getattr(self, "count", -2) + 1  # the first is the rehearsal
        loss = self.losses[max(0, self.count)]
        return {"bleu": self.bleu[max(0, self.count)]} | ({} if loss is None else {"loss": loss})


def find_published_step(folder: Path) -> int:
    """Return the step whose weights were published as the best."""
    best = read_safetensors(folder / "weights.safetensors")
    same = [
        path
        for path in find_checkpoints(folder)
        if all(torch.equal(tensor, best[name]) for name, tensor in read_tensors(path, "weights").items())
    ]
    assert len(same) == 1
    return int(same[0].name)


def train_scored(folder: Path, bleu: tuple[float, ...], losses: tuple[float | None, ...]) -> list[object]:
    task = type("Given", (ScoredTask,), {"bleu": bleu, "losses": losses})
    config = make_toy_config(folder)
    return list(train(task(config), config))


NAN = float("nan")


@pytest.mark.parametrize(
    ("bleu", "losses", "step", "marks"),
    [
        ((0, 0, 0, 0, 0), (3, 2, 1, 1.5, 2.5), 24, "TTT.."),
        ((0, 0, 0, 0, 0), (1, 1, 1, 1, 1), 40, "TTTTT"),
        ((0, 0, 0, 0, 0), (None,) * 5, 40, "TTTTT"),
        ((1, 5, 5, 2, 5), (3, 2, 4, 1, 2), 40, "TT..T"),
        ((1, 5, 5, 2, 5), (3, 2, 4, 1, NAN), 16, "TT..."),
        ((NAN, 0, 0, NAN, 0), (1, 3, 2, 0, 4), 24, ".TT.."),
        ((5, 4, 3, 2, 1), (5, 4, 3, 2, 1), 8, "T...."),
    ],
)
def test_ties_go_to_the_lower_loss_and_then_to_the_later_step(
    tmp_path: Path, bleu: tuple[float, ...], losses: tuple[float | None, ...], step: int, marks: str
) -> None:
    events = train_scored(tmp_path / "run", tuple(map(float, bleu)), losses)
    assert "".join("T" if event.best else "." for event in events if isinstance(event, Evaluated)) == marks
    assert find_published_step(tmp_path / "run") == step
    assert int(rank_checkpoints(tmp_path / "run", ScoredTask.goal)[0].name) == step
    assert (
        int(average_checkpoints(tmp_path / "run", 1, "best", ScoredTask.goal, tmp_path / "mean.safetensors")[0].name)
        == step
    )


def list_notes(events: list[object]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noted)]


def test_a_goal_that_never_moved_is_told_at_the_end_and_by_resume(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    told = "bleu was 0 at all 5 evaluations: the loss chose the best; train longer, or choose another goal"
    events = train_scored(folder, (0.0,) * 5, (3.0, 2.0, 1.0, 1.5, 2.5))
    assert list_notes(events) == [told]
    assert isinstance(events[-2], Noted)
    config = make_toy_config(folder)
    assert list_notes(list(train(ScoredTask(config), config, resume=folder))) == [told]


def test_a_goal_that_was_never_a_number_is_told(tmp_path: Path) -> None:
    told = "bleu was no number at all 5 evaluations: none is called best; train longer, or choose another goal"
    assert list_notes(train_scored(tmp_path / "run", (NAN,) * 5, (1.0,) * 5)) == [told]


def test_a_goal_that_moved_once_or_was_measured_once_is_not_told(tmp_path: Path) -> None:
    assert list_notes(train_scored(tmp_path / "run", (0.0, 0.0, 0.0, 0.0, 0.1), (1.0,) * 5)) == []
    assert list_notes(collect_events(tmp_path / "once", training__stop__steps=8)) == []
