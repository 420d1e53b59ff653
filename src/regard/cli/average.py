"""`regard average`: the mean of several checkpoints, often better than any one of them."""

from pathlib import Path
from typing import Literal


def average(run: Path, *, count: int = 5, by: Literal["last", "best"] = "last", output: Path | None = None) -> None:
    """Average the weights of several checkpoints of a run.

    Parameters
    ----------
    run
        The run folder.
    count
        How many checkpoints.
    by
        The last ones, or those with the best metric.
    output
        Where the weights go; averaged.safetensors in the run folder if it is not given.
    """
    from regard.tasks import import_task, read_config
    from regard.training import average_checkpoints
    from regard.training.checkpoint import describe_damage, find_damage

    output = output or run / "averaged.safetensors"
    config = read_config(run)
    used = average_checkpoints(run, count, by, import_task(config.task).get_goal(config), output)
    for error in find_damage(run).values():
        print(f"note: left out {describe_damage(error)}")
    print(f"{output}: the mean of steps {', '.join(str(int(path.name)) for path in used)}")
    print(f"now: regard evaluate {run} --weights {output.stem if output.parent == run else output}")
