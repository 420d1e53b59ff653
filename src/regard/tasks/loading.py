"""Train a task and load what a run has trained: `regard.train`, `regard.load`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.algebra.foreign_names import KEPT
from regard.datasets.locations import is_path
from regard.datasets.text import check_text
from regard.errors import format_message, wrong
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, Prediction, Predictor
from regard.tasks.registry import import_task, read_config
from regard.training import train as take_steps


class TrainedModel:
    """What a run has trained, for every task: `predict` and `evaluate` do what the commands of these names do.

    `config` has all settings of the run, `predictor` the model and what its task needs beside it.
    """

    def __init__(self, folder: Path, config: Any, predictor: Predictor) -> None:
        self.folder, self.config, self.predictor = folder, config, predictor

    @property
    def task(self) -> str:
        """The name of the task."""
        return str(self.config.task)

    def predict(self, *item: object) -> Prediction:
        """Return the answer to one thing, with its picture and its weights.

        `item` is what the task reads: a text, numbers, a file, a file and a question. Without it, an example of the
        held-out data is taken.
        """
        words = [str(word) for word in item]
        for word, given in zip(words, item, strict=True):
            if isinstance(given, list | tuple | set | dict):
                fix = "call it once for each: [model.predict(one) for one in items]"
                raise wrong("item", f"a {type(given).__name__} of {len(given)}", "a text, a number or a file", fix)
            if not is_path(word):
                check_text(word, "item")
        return self.predictor.predict(words)

    __call__ = predict

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "config" not in vars(self):
            raise AttributeError(name)
        kept = name in KEPT.split()
        fix = "write model.predict(…).weights" if kept else "write model.predict(…), which every task has"
        raise AttributeError(format_message(f"model.{name}", f"a run of {self.task}", "predict or evaluate", fix))

    def evaluate(self, *data: str | Path, split: HeldOutSplit = "test") -> Mapping[str, EvaluationReport]:
        """Return a report for each set: of the run's own held-out data, or of other data of the same kind."""
        names = [str(name) for name in data]
        return self.predictor.evaluate(import_task(self.task).join_data_names(names) if names else None, split)

    def __repr__(self) -> str:
        return f"TrainedModel({str(self.folder)!r}, task {self.task})"


def load(run: str | Path, weights: str | Path | None = None) -> TrainedModel:
    """Return what a run has trained, with its best weights or others: a file, or its name in the run folder.

    model = regard.load("runs/numbers-transformer-tiny")
    model.predict("forty-two").text
    """
    folder = Path(run)
    config = read_config(folder)
    chosen = None if weights is None else Path(weights)
    return TrainedModel(folder, config, import_task(config.task).load(config, folder, chosen))


def train(
    task: str, *data: str | Path, preset: str | None = None, fields: Mapping[str, Any] | None = None
) -> TrainedModel:
    """Train a task as `regard train TASK DATA … --preset NAME --FIELD VALUE` does, and return what it has learned.

    The run is kept in a folder below `runs`, or in `fields["folder"]`. Nothing is printed; Ctrl-C saves it.

    model = regard.train("reading", "facts-zh", fields={"stop.epochs": 4})
    model.predict().text
    """
    definition = import_task(task)
    config = definition.configure(preset, [str(name) for name in data], fields or {})
    built = definition.build_task(config)
    for _ in take_steps(built, built.config):
        pass
    return load(built.config.training.folder)
