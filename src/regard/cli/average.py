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
        Where the weights go; averaged.safetensors in the run folder where it is not given.
    """
    from regard.tasks import config_of, kit
    from regard.training import average as averaged
    from regard.training.checkpoint import find_damage, problem_of

    output = output or run / "averaged.safetensors"
    config = config_of(run)
    used = averaged(run, count, by, kit(config.task).goal_of(config), output)
    for error in find_damage(run).values():
        print(f"note: left out {problem_of(error)}")
    print(f"{output}: the mean of steps {', '.join(str(int(path.name)) for path in used)}")
    print(f"now: regard evaluate {run} --weights {output.stem if output.parent == run else output}")
