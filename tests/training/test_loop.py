"""What the events say, what a step computes, and when a run ends."""

import json
import tomllib
from pathlib import Path

import pytest
import torch
from toy_training import Toy, collect_events, make_toy_config

from regard.training import (
    Evaluated,
    Finished,
    Goal,
    Saved,
    Started,
    Stepped,
    average_checkpoints,
    find_checkpoints,
    read_safetensors,
    train,
)
from regard.training.checkpoint import read_state, read_tensors
from regard.training.progress import seed_generator
from regard.training.step import DivergedError, scale_gradients
from regard.training.task import DataShare

PART = DataShare()


def test_events_come_in_order_and_are_recorded(tmp_path: Path) -> None:
    events = collect_events(tmp_path / "run", training__stop__steps=9)
    assert [type(event).__name__ for event in events] == [
        "Started",
        *("Stepped", "Saved"),  # 3
        *("Stepped", "Saved"),  # 6
        *("Evaluated", "Saved"),  # 8
        *("Stepped", "Evaluated", "Saved"),  # 9
        "Finished",
    ]
    assert events[0] == Started(tmp_path / "run", 0, 0, 9, 531, 1)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["stepped", "stepped", "evaluated", "stepped", "evaluated"]
    assert sum(line["tokens"] for line in lines if line["event"] == "stepped") == sum(
        int((Toy(make_toy_config(tmp_path)).epoch(epoch, part)[batch][:, 1:] > 0).sum())
        for epoch, batch, part in [(0, batch, PART) for batch in range(8)] + [(1, 0, PART)]
    )


def test_the_folder_documents_itself(tmp_path: Path) -> None:
    collect_events(tmp_path / "run", training__stop__steps=3)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "checkpoints",
        "command.txt",
        "config.toml",
        "metrics.jsonl",
        "versions.json",
        "weights.safetensors",
        "words.json",
    }
    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert config["training"]["stop"] == {
        "steps": 3,
        "epochs": "none",
        "patience": "none",
        "target": "none",
        "minutes": "none",
        "least": "none",
    }


def test_accumulation_weighs_every_token_alike(tmp_path: Path) -> None:
    """Two batches in one step have the gradient of the mean over all their tokens."""
    same = {"training__stop__steps": 1, "model__dropout": 0.0, "training__optimizer__clip": None}
    config = make_toy_config(tmp_path / "run", training__optimizer__accumulate=3, **same)
    task = Toy(config)
    stepped = next(event for event in train(task, config) if isinstance(event, Stepped))
    seed_generator(3, -1, 0)
    model = task.model()
    losses = [task.loss(model, task.epoch(0, PART)[index]) for index in range(3)]
    mean = sum(loss.total for loss in losses) / sum(loss.count for loss in losses)
    mean.backward()
    norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])
    assert stepped.loss == pytest.approx(mean.item(), rel=1e-6)
    assert stepped.norm == pytest.approx(norm.item(), rel=1e-5)


def test_ten_steps_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    """Against torch alone: the mean loss, its gradient clipped by torch, AdamW with decay for matrices."""
    collect_events(tmp_path / "run", model__dropout=0.0, training__stop__steps=10, training__optimizer__clip=0.7)
    config = make_toy_config(tmp_path, training__optimizer__clip=0.7, model__dropout=0.0)
    task, settings = Toy(config), config.training.optimizer
    seed_generator(config.training.seed, -1, 0)
    model = task.model()
    groups = [
        {"params": [parameter for parameter in model.parameters() if parameter.ndim > 1], "weight_decay": 0.01},
        {"params": [parameter for parameter in model.parameters() if parameter.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9, foreach=False)
    batches = [*task.epoch(0, PART), *task.epoch(1, PART)][:10]
    for step, batch in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * step / 400
        loss = task.loss(model, batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.7)
        optimizer.step()
    trained = read_tensors(find_checkpoints(tmp_path / "run")[-1], "weights")
    untrained = Toy(config).model().state_dict()
    for name, tensor in trained.items():
        torch.testing.assert_close(tensor, model.state_dict()[name], rtol=1e-5, atol=1e-6)
        assert not torch.equal(tensor, untrained[name])


def test_clipping_bounds_the_gradient_and_reports_what_it_was(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([30.0, 40.0])
    assert scale_gradients([parameter], 0.1, clip=2.0) == pytest.approx(5.0)
    torch.testing.assert_close(parameter.grad, torch.tensor([1.2, 1.6]))
    assert scale_gradients([parameter], 0.5, clip=None) == pytest.approx(1.0)
    torch.testing.assert_close(parameter.grad, torch.tensor([0.6, 0.8]))


class WorseTask(Toy):
    """A task whose metric is best at its second evaluation."""

    def metrics(self, sums: dict[str, float]) -> dict[str, float]:
        self.count = getattr(self, "count", -1) + 1  # the first is the rehearsal
        return {"loss": [9.0, 3.0, 1.0, 2.0, 2.5, 0.5][self.count]}


def test_patience_ends_the_run_and_the_best_weights_are_published(tmp_path: Path) -> None:
    config = make_toy_config(tmp_path / "run", training__stop__patience=2)
    events = list(train(WorseTask(config), config))
    assert [event.best for event in events if isinstance(event, Evaluated)] == [True, True, False, False]
    assert events[-1] == Finished("patience", 32, 1.0, tmp_path / "run", f"regard resume {tmp_path / 'run'}")
    best = read_safetensors(tmp_path / "run" / "checkpoints" / "000000016" / "weights.safetensors")
    published = read_safetensors(tmp_path / "run" / "weights.safetensors")
    assert all(torch.equal(best[name], published[name]) for name in best)
    # Last two and best two, the older ones without the optimizer.
    assert [int(path.name) for path in find_checkpoints(tmp_path / "run")] == [16, 24, 30, 32]
    full = [int(path.name) for path in find_checkpoints(tmp_path / "run") if (path / "optimizer.safetensors").exists()]
    assert full == [30, 32]


def test_a_target_ends_the_run(tmp_path: Path) -> None:
    config = make_toy_config(tmp_path / "run", training__stop__target=1.5)
    assert list(train(WorseTask(config), config))[-1].reason == "target"


def test_epochs_end_the_run_and_each_is_evaluated(tmp_path: Path) -> None:
    events = collect_events(
        tmp_path / "run",
        training__stop__steps=None,
        training__stop__epochs=2,
        training__every__evaluate=None,
        training__optimizer__accumulate=3,
    )
    assert [event.step for event in events if isinstance(event, Evaluated)] == [3, 6]
    assert events[0].steps == 6
    assert events[-1].reason == "epochs"


def test_the_clock_makes_a_checkpoint_that_does_not_stay(tmp_path: Path) -> None:
    events = collect_events(
        tmp_path / "run",
        training__every__minutes=1e-9,
        training__every__save=None,
        training__stop__steps=8,
    )
    assert [event.step for event in events if isinstance(event, Saved)] == list(range(1, 9))
    assert [int(path.name) for path in find_checkpoints(tmp_path / "run")] == [8]


def test_a_loss_that_is_no_number_spoils_nothing(tmp_path: Path) -> None:
    with pytest.raises(DivergedError) as caught:
        collect_events(tmp_path / "run", model__bad_at=1)
    assert str(caught.value) == (
        "loss: got nan at step 9, expected a finite number; fix: lower the rate (2.3e-05 now) or clip more; "
        "the last checkpoint is from before this"
    )
    last = find_checkpoints(tmp_path / "run")[-1]
    assert all(tensor.isfinite().all() for tensor in read_tensors(last, "weights").values())


def test_a_metric_that_is_no_number_is_never_the_best() -> None:
    goal = Goal("bleu", "higher")
    assert not goal.improves(float("nan"), None)
    assert not goal.improves(float("nan"), 1.0)
    assert goal.improves(0.5, None)
    assert goal.improves(2.0, 1.0)
    assert not Goal("loss", "lower").improves(2.0, 1.0)


def test_the_average_is_the_mean_of_the_kept_weights(tmp_path: Path) -> None:
    collect_events(tmp_path / "run", training__keep=3)
    run, output = tmp_path / "run", tmp_path / "averaged.safetensors"
    chosen = average_checkpoints(run, 3, "last", Toy.goal, output)
    assert [int(path.name) for path in chosen] == [40, 39, 36]
    expected = torch.stack([read_tensors(path, "weights")["out.bias"].double() for path in chosen]).mean(0)
    torch.testing.assert_close(read_safetensors(output)["out.bias"], expected.float(), rtol=0, atol=0)
    best = average_checkpoints(run, 2, "best", Toy.goal, output)
    metrics = [read_state(path)["progress"]["metric"] for path in best]
    assert metrics == sorted(metrics)
    with pytest.raises(ValueError, match=r"^count: got 9, expected 1 to 3, the best checkpoints that .* has kept"):
        average_checkpoints(run, 9, "best", Toy.goal, output)


def test_data_that_shrank_is_noticed(tmp_path: Path) -> None:
    collect_events(tmp_path / "run", training__stop__steps=6)

    class ShrunkTask(Toy):
        def epoch(self, number: int, part: object) -> object:
            return super().epoch(number, part)[:4]

    config = make_toy_config(tmp_path / "run", training__stop__steps=9)
    with pytest.raises(ValueError, match=r"^data: got 4 batches in epoch 0, expected more than 6, as when it was"):
        list(train(ShrunkTask(config), config, resume=tmp_path / "run"))
