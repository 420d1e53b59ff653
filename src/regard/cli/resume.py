"""`regard resume`: go on with a run from its last checkpoint."""

from pathlib import Path

from regard.cli.dispatch import Arguments
from regard.cli.fields import find_switches, parse_arguments
from regard.cli.training import run_training
from regard.errors import wrong

OPTIONS = ("nproc", "restarts", "tensorboard")


def resume(run: Path, *arguments: Arguments) -> None:
    """Go on with a run from its last checkpoint, as if it had never stopped.

    Parameters
    ----------
    run
        The run folder.
    arguments
        --nproc and --restarts as for training, and fields to change, such as --stop.epochs 40.
    """
    from regard.tasks import import_task, read_config

    config = read_config(run)
    given = parse_arguments(arguments, OPTIONS, {"tensorboard"} | find_switches(config))
    if given.names:
        fix = "write --name value for each field to change"
        raise wrong("resume", f"{given.names[0]} after {run}", "one run folder", fix)
    run_training(import_task(config.task).apply_changes(config, given.fields), resume=run, options=given.options)
