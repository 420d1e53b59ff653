"""Train in one process or several and show the events: shared by `train` and `resume`."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.interruption import INTERRUPTED
from regard.cli.output import open_training_console, print_error
from regard.errors import format_message, wrong

if TYPE_CHECKING:
    from regard.training import Event

NOT_BEGUN = "training had not begun; run the same command again"


def run_training(config: Any, *, resume: Path | None, options: dict[str, str]) -> None:
    """Train until the end or an interruption; with `nproc` above 1, in that many new processes."""
    from regard.training.lock import check_free
    from regard.training.run_folder import check_unused

    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1  # another process may have made the folder already
    (check_unused if alone and resume is None else check_free)(resume or config.training.folder)  # before data is read
    processes = parse_number(options, "nproc", 1, least=1)
    restarts = parse_number(options, "restarts", 0, least=0)
    board = options.get("tensorboard") == "true"
    config = choose_parallel(config, processes * int(os.environ.get("WORLD_SIZE", "1")))
    with say_what_is_kept(resume or config.training.folder):
        if processes == 1:
            finished = train_and_show(config, resume, board) != "interrupted"
        else:
            from regard.training import launch

            finished = launch(train_in_process, config, resume, board, processes=processes, restarts=restarts)
    if not finished:
        sys.exit(INTERRUPTED)


@contextmanager
def say_what_is_kept(run: Path) -> Iterator[None]:
    """Let a Ctrl-C that does not wait for the next step say how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        from regard.training.run_folder import format_resume_command

        is_made = (run / "versions.json").is_file()
        error.add_note(f"to go on: {format_resume_command(run)}" if is_made else NOT_BEGUN)
        raise


def train_in_process(config: Any, resume: Path | None, board: bool) -> None:
    """Train in one of several processes: `launch` wants a function that returns nothing."""
    train_and_show(config, resume, board)


def train_and_show(config: Any, resume: Path | None, board: bool) -> str:
    """Train, and return why it ended. Only the first process shows the events."""
    from regard.tasks import build_task
    from regard.training import Finished, train

    task, reason = build_task(config, resume), ""
    config = task.config  # with what follows from the data
    if os.environ.get("RANK", "0") == "0":
        events = show_training(task, config, resume, board)
    else:
        events = train(task, config, resume=resume)
    for event in events:
        if isinstance(event, Finished):
            reason = event.reason
    return reason


def show_training(task: Any, config: Any, resume: Path | None, board: bool) -> "Iterator[Event]":
    """Train, show the events and yield them; at the end, print what can be done with the run."""
    from regard.tasks import TASKS
    from regard.training import Finished, train
    from regard.training.display import TrainingDisplay
    from regard.training.plan import describe_plan
    from regard.training.run_folder import format_resume_command

    console = open_training_console()
    for note in (*task.notes, *filter(None, [getattr(task, "units", "")])):
        console.print(f"note: {note}", markup=False)
    if resume is None:
        console.print(f"note: {describe_plan(task, config)}", markup=False)
    display = TrainingDisplay(console, minutes=config.training.stop.minutes)
    events = train(task, config, resume=resume, stop=lambda: console.reader_gone, after_step=display.advance)
    if board:
        from regard.training.tensorboard import write_tensorboard

        events = write_tensorboard(events)
    for event in display.show(events):
        yield event
        if isinstance(event, Finished) and event.reason != "interrupted":
            use = TASKS[config.task].command
            console.print(f"now: regard evaluate {event.folder}, or: regard {use} {event.folder}", markup=False)
        elif isinstance(event, Finished) and console.reader_gone:
            fix = f"{format_resume_command(event.folder)} > log.txt"
            print_error(format_message("output", "a reader that has gone", "one that reads to the end", fix))


def choose_parallel(config: Any, processes: int) -> Any:
    """Return the configuration with DDP if there are several processes and no way to share gradients was chosen."""
    if processes == 1 or config.training.parallel != "none":
        return config
    return replace(config, training=replace(config.training, parallel="ddp"))


def parse_number(options: dict[str, str], name: str, default: int, *, least: int) -> int:
    """Return the option `name` as a whole number."""
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < least:
        raise wrong(f"--{name}", text, f"a whole number, {least} or more", f"write --{name} {max(least, default)}")
    return int(text)
