"""What a terminal shows of a run, and what TensorBoard is given."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from toy_training import Toy, collect_events, make_toy_config

from regard.errors import InputError
from regard.training import Finished, Intervals, Stepped, train
from regard.training.display import RemainingTime, TrainingDisplay, format_event
from regard.training.progress import Progress
from regard.training.tensorboard import extract_scalars, write_tensorboard


def test_a_pipe_gets_lines_and_no_bar(tmp_path: Path) -> None:
    config, output = make_toy_config(tmp_path / "run", training__stop__steps=8), io.StringIO()
    events = list(TrainingDisplay(Console(file=output, width=200)).show(train(Toy(config), config)))
    assert isinstance(events[-1], Finished)
    lines = output.getvalue().splitlines()
    assert lines[0] == f"{tmp_path / 'run'}: to step 8, 531 parameters"
    assert lines[1].startswith("step 8, epoch 1: loss 2.")
    assert lines[1].endswith(", the best so far")
    assert lines[2] == "all steps taken at step 8"
    assert len(lines) == 3


def test_a_terminal_gets_loss_speed_and_time_left(tmp_path: Path) -> None:
    config, output = make_toy_config(tmp_path / "run", training__stop__steps=8), io.StringIO()
    console = Console(file=output, width=200, force_terminal=True)
    display = TrainingDisplay(console)
    list(display.show(train(Toy(config), config, after_step=display.advance)))
    shown = output.getvalue()
    assert "loss 2." in shown
    assert "tokens/s" in shown
    assert "8/8" in shown
    assert " s left" in shown


def test_the_time_left_is_known_from_the_second_step_on() -> None:
    now = iter([0.0, 100.0, 103.0, 106.0, 200.0])
    remaining = RemainingTime(lambda: next(now))
    assert remaining.estimate(1, 11) is None
    assert remaining.estimate(2, 11) == 27  # not slowed by the first step
    assert remaining.estimate(3, 11) == 24
    assert remaining.estimate(11, 11) == 0


def test_the_time_left_is_at_most_what_was_allowed() -> None:
    now = iter([0.0, 10.0, 20.0])
    remaining = RemainingTime(lambda: next(now), minutes=1.0)
    assert remaining.estimate(1, 1000) == 50
    assert remaining.estimate(2, 1000) == 40


def test_a_log_grows_from_the_first_minute_and_ever_more_slowly(tmp_path: Path) -> None:
    """A step takes 10 seconds of this clock; every second line is twice as far from the last."""
    config, output, steps = make_toy_config(tmp_path / "run", training__stop__steps=60), io.StringIO(), [0]
    display = TrainingDisplay(Console(file=output, width=200), clock=lambda: 10.0 * steps[0])

    def advance(progress: Progress) -> None:
        steps[0] = progress.step
        display.advance(progress)

    config = replace(config, training=replace(config.training, every=Intervals(log=1000, evaluate=1000)))
    list(display.show(train(Toy(config), config, after_step=advance)))
    lines = output.getvalue().splitlines()[1:-2]
    assert [line.split(",")[0] for line in lines] == [f"step {step} of 60" for step in (2, 5, 11, 23, 47)]
    assert lines[0].startswith("step 2 of 60, epoch 0: loss 2.")
    assert lines[0].endswith(" tokens/s, 9 min 40 s left")


def test_minutes_end_a_run_with_everything_evaluated_and_saved(tmp_path: Path) -> None:
    events = collect_events(tmp_path / "run", training__stop__minutes=1e-6, training__stop__steps=1000)
    assert [type(event).__name__ for event in events[-3:]] == ["Evaluated", "Saved", "Finished"]
    finished = events[-1]
    assert (finished.reason, finished.step) == ("minutes", 1)
    assert format_event(finished) == f"time is up at step 1; to go on: regard resume {tmp_path / 'run'}"
    again = collect_events(tmp_path / "run", resume=True, training__stop__minutes=None, training__stop__steps=3)
    assert again[-1].step == 3


def test_an_interrupted_run_says_how_to_go_on() -> None:
    finished = Finished("interrupted", 5, None, Path("runs/a"), "regard resume runs/a")
    assert format_event(finished) == "interrupted, everything saved at step 5; to go on: regard resume runs/a"


def test_curves_have_names_and_steps() -> None:
    stepped = Stepped(3, 1, 2.0, 100, 0.5, 0.01, 1.5)
    assert list(extract_scalars(stepped)) == [
        ("train/loss", 2.0, 3),
        ("train/rate", 0.01, 3),
        ("train/norm", 1.5, 3),
        ("train/tokens_per_second", 200.0, 3),
    ]


def test_tensorboard_is_written_or_asked_for(tmp_path: Path) -> None:
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match=r"^tensorboard: got no such package, expected it installed"):
            list(write_tensorboard(iter(())))
        return
    list(write_tensorboard(iter(collect_events(tmp_path / "run", training__stop__steps=8))))
    assert list((tmp_path / "run" / "tensorboard").glob("events.out.tfevents.*"))
