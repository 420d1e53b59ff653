"""Load the runs that commands work with."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from regard.errors import wrong

if TYPE_CHECKING:
    from regard.tasks.prediction import Predictor
    from regard.tasks.translation import Translator


def check_task(run: Path, name: str, how: str) -> None:
    """Raise unless the run is one of the task `name`; the command `how` makes such a run."""
    from regard.tasks import read_task_name

    task = read_task_name(run)
    if task != name:
        raise wrong("run", f"{run}, a run of {task}", f"one of {name}", f"name another, or make one with {how}")


def is_exported(folder: Path) -> bool:
    """Return whether a folder was exported for another program, as ONNX graphs or for CTranslate2."""
    return any((folder / name).is_file() for name in ("graphs.json", "model.bin"))


@dataclass
class LoadOptions:
    """Options of loading a run."""

    weights: Path | None = None
    "Other weights: a file, or its name in the run folder."
    threads: int = 0
    "How many torch may use; 0: as the run was configured."

    engine: Literal["torch", "ct2"] = "torch"
    "ct2: by CTranslate2, for Transformers; what it needs is kept in the run folder."

    def load_translator(self, run: Path) -> "Translator":
        """Return the translator of a run, or of a folder that was exported."""
        if is_exported(run):
            return self.load_exported(run)
        from regard.tasks.translation import Translator

        check_task(run, "translation", "regard train translation")
        translator = Translator.load(self.load_config(run), run, self.weights)
        if self.engine == "torch":
            return translator
        from regard.export import open_translator

        return open_translator(translator, run, self.weights)

    def load_exported(self, folder: Path) -> "Translator":
        """Return the translator of an exported folder, which has its own engine and its own weights."""
        import torch

        from regard.export import open_exported

        if self.weights is not None:
            raise wrong("--weights", self.weights, f"none: {folder} has its own", "leave it out, or name the run")
        if self.threads:
            torch.set_num_threads(self.threads)
        return open_exported(folder)

    def load_predictor(self, run: Path) -> "Predictor":
        """Return the predictor of a run, for every task."""
        from regard.tasks import import_task

        config = self.load_config(run)
        if self.engine != "torch":
            raise wrong("engine", self.engine, f"torch for a run of {config.task}", "leave --engine out")
        return import_task(config.task).load(config, run, self.weights)

    def load_config(self, run: Path) -> Any:
        """Return the configuration of a run, and give torch the threads that it names."""
        import torch

        from regard.tasks import read_config

        config = read_config(run)
        if self.threads or config.training.threads:
            torch.set_num_threads(self.threads or config.training.threads)
        return config


LoadFlags = Annotated[LoadOptions | None, Parameter(name="*")]
