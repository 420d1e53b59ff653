"""What a terminal shows of a run, and what TensorBoard is given."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from toy_training import Toy, events_of, toy_config

from regard.errors import InputError
from regard.training import Finished, Stepped, train
from regard.training.display import display_events, format_event
from regard.training.tensorboard import extract_scalars, write_tensorboard


def test_a_pipe_gets_lines_and_no_bar(tmp_path: Path) -> None:
    config, output = toy_config(tmp_path / "run", training__stop__steps=8), io.StringIO()
    events = list(display_events(train(Toy(config), config), Console(file=output, width=200)))
    assert isinstance(events[-1], Finished)
    lines = output.getvalue().splitlines()
    assert lines[0] == f"{tmp_path / 'run'}: to step 8, 531 parameters"
    assert lines[1].startswith("step 8, epoch 1: loss 2.")
    assert lines[1].endswith(", the best so far")
    assert lines[2] == "all steps taken at step 8"
    assert len(lines) == 3


def test_a_terminal_gets_loss_speed_and_time_left(tmp_path: Path) -> None:
    config, output = toy_config(tmp_path / "run", training__stop__steps=8), io.StringIO()
    console = Console(file=output, width=200, force_terminal=True)
    list(display_events(train(Toy(config), config), console))
    shown = output.getvalue()
    assert "loss 2." in shown
    assert "tokens/s" in shown
    assert "8/8" in shown


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
    list(write_tensorboard(iter(events_of(tmp_path / "run", training__stop__steps=8))))
    assert list((tmp_path / "run" / "tensorboard").glob("events.out.tfevents.*"))
