"""Load the runs that commands work with."""

import sys
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
    precision: Literal["float32", "bfloat16", "int8"] = "float32"
    "Bits of the matrices: int8 and bfloat16 are faster on many processors, and change a few answers."

    def load_plain_translator(self, run: Path) -> "Translator":
        """Return the translator of a run by torch, as it was trained."""
        from regard.tasks.translation import Translator

        check_task(run, "translation", "regard train translation")
        return Translator.load(self.load_config(run), run, self.weights)

    def load_predictor(self, run: Path) -> "Predictor":
        """Return the predictor of a run, for every task."""
        from regard.models.kernels.prepacked import is_on_cpu, prepack
        from regard.tasks import import_task

        config = self.load_config(run)
        predictor = import_task(config.task).load(config, run, self.weights)
        if is_on_cpu(predictor.model):
            prepack(predictor.model, self.precision)
        return predictor

    def load_config(self, run: Path) -> Any:
        """Return the configuration of a run, and give torch the threads that it names."""
        import torch

        from regard.tasks import read_config

        config = read_config(run)
        if self.threads or config.training.threads:
            torch.set_num_threads(self.threads or config.training.threads)
        return config


@dataclass
class EngineOptions(LoadOptions):
    """Options of loading a translator, which other programs than torch can compute too."""

    engine: Literal["auto", "torch", "ct2", "onnx"] = "torch"
    "What translates: torch; ct2, for Transformers; onnx; auto: the fastest that finds the same. Files go to the run."

    def load_translator(self, run: Path) -> "Translator":
        """Return the translator of a run by the engine, or of a folder that was exported."""
        if is_exported(run):
            return self.load_exported(run)
        from regard.export import open_engine

        translator = self.load_plain_translator(run)
        choice = open_engine(translator, run, self.engine, self.precision, self.weights)
        if self.engine == "auto":
            print(f"regard: engine {choice.name}: {choice.reason}", file=sys.stderr)
        return choice.translator

    def load_exported(self, folder: Path) -> "Translator":
        """Return the translator of an exported folder, which has its own engine and its own weights."""
        import torch

        from regard.export import open_exported

        if self.weights is not None:
            raise wrong("--weights", self.weights, f"none: {folder} has its own", "leave it out, or name the run")
        if self.threads:
            torch.set_num_threads(self.threads)
        return open_exported(folder)


RunFolder = Annotated[Path, Parameter(help="The run folder.")]
Split = Literal["test", "validation"]
LoadFlags = Annotated[LoadOptions | None, Parameter(name="*")]
EngineFlags = Annotated[EngineOptions | None, Parameter(name="*")]
