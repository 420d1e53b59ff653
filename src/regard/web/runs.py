"""The run folders that are served: what they are, and their models, loaded when they are first asked for."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError, wrong
from regard.models.kernels.prepacked import is_on_cpu, prepack
from regard.tasks import import_task, read_config
from regard.tasks.prediction import WEIGHTS, Prediction
from regard.tasks.translation import TranslationConfig, Translator
from regard.tasks.translation.predictor import read_first_source
from regard.tasks.translation.text import ENDLESS
from regard.training.run_folder import refuse_folder, suggest_run
from regard.web.inputs import INPUT_KINDS, RunInput
from regard.web.limits import Limits
from regard.web.responses import hide_paths, refuse
from regard.web.run_checks import report_run_errors, vet_config, vet_model, vet_texts
from regard.web.workers import Ticket


class LoadedModel(NamedTuple):
    """A trained model, and the time and size of its file: a run in progress writes better ones."""

    stamp: tuple[int, int]
    model: Any


def load_prepacked(config: TranslationConfig, folder: Path) -> Translator:
    """Return the translator of a run, whose model will not be trained here."""
    translator = Translator.load(config, folder)
    if is_on_cpu(translator.model):
        prepack(translator.model)
    return translator


class Run:
    """One run folder."""

    def __init__(self, name: str, folder: Path, limits: Limits) -> None:
        self.name, self.folder, self.limits = name, folder, limits
        self.lock = threading.Lock()
        self.loaded: LoadedModel | None = None

    def read_config(self) -> Any:
        """Return the settings, read anew: resuming a run may change them."""
        vet_texts(self.folder)
        config = read_config(self.folder)
        vet_config(config, self.limits)
        return config

    def describe(self, ticket: Ticket) -> dict[str, Any]:
        """Return what the page shows of the run, or why it cannot be used."""
        ticket.check()
        try:
            with report_run_errors(self.folder, self.name):
                config = self.read_config()
                return {"name": self.name, "ready": (self.folder / WEIGHTS).is_file(), **describe_run(config)}
        except RegardError as error:
            return {"name": self.name, "error": hide_paths(str(error))}

    def load_translator(self) -> Translator:
        """Return the translator with the best weights so far."""
        translator: Translator = self.load_model(("translation",), load_prepacked)
        return translator

    def ask(self, item: RunInput | None) -> tuple[Prediction, Mapping[str, str]]:
        """Return the prediction for an input; or for a held-out example if none is given, and what it was asked."""
        predictor = self.load_model(INPUT_KINDS, lambda config, folder: import_task(config.task).load(config, folder))
        config = self.read_config()
        kind = INPUT_KINDS[config.task]
        if item is not None:
            return kind.predict(predictor, item, self.limits), {}
        if not is_generated(config):
            raise refuse(409, "example", "data that lie outside of the run", "generated ones", "choose a file")
        prediction: Prediction = predictor.predict(())
        return prediction, kind.fill(predictor, prediction)

    def read_plan(self) -> dict[str, int | None]:
        """Return how long the run is to train, as far as its settings say."""
        try:
            stop = self.read_config().training.stop
        except (RegardError, OSError):
            return {}
        return {"steps": stop.steps, "epochs": stop.epochs}

    def load_model(self, tasks: Collection[str], load: Callable[[Any, Path], Any]) -> Any:
        """Return the model with the best weights so far. One thread loads it, others wait."""
        with self.lock, report_run_errors(self.folder, self.name):
            config = self.read_config()
            if config.task not in tasks:
                got = f"{self.name}, a run of {config.task}"
                raise refuse(409, "run", got, f"one of {', '.join(tasks)}", "choose another, or open its curves")
            if config.task in INPUT_KINDS and not is_askable(config):
                got, fix = f"{self.name}, whose data lie outside of it", f"look at it with: regard show {self.name}"
                raise refuse(409, "run", got, "one of generated data", fix)
            stamp = read_stamp(self.folder / WEIGHTS)
            if self.loaded is None or self.loaded.stamp != stamp:
                vet_model(self.folder, self.limits.weights)
                served = replace(config, training=replace(config.training, device="cpu"))
                self.loaded = LoadedModel(stamp, load(served, self.folder))
            return self.loaded.model


def describe_run(config: Any) -> dict[str, Any]:
    """Return the task of a run, how it is asked, and an example if the task generates its data."""
    facts = {"task": config.task, "about": describe_config(config)}
    if isinstance(config, TranslationConfig) and config.data.text in ENDLESS:
        facts["sample"] = read_first_source(replace(config, data=replace(config.data, held_out=1)))
    if config.task in INPUT_KINDS and is_askable(config):
        kind = INPUT_KINDS[config.task]
        facts |= {"takes": kind.takes, "questioned": kind.needs_question, "example": is_generated(config)}
    return facts


def is_generated(config: Any) -> bool:
    """Return whether the data are those that the task generates, and not more of them than usual.

    No other data that a folder names are opened. A seed may be any.
    """
    usual, data = (list_settings(one) for one in (import_task(config.task).default.data, config.data))
    return usual.keys() == data.keys() and all(is_usual(name, usual[name], data[name]) for name in usual)


def is_usual(name: str, usual: Any, value: Any) -> bool:
    """Return whether a setting of the data is the usual one; or a number that is not larger, or any seed."""
    counts = isinstance(value, int) and not isinstance(value, bool)
    fits = counts and (usual is None or (isinstance(usual, int) and 0 < value <= usual))  # None follows the data
    return bool(value == usual or name == "seed" or fits)


def list_settings(config: Any) -> dict[str, Any]:
    """Return the settings of a dataclass by name."""
    return {entry.name: getattr(config, entry.name) for entry in fields(config)}


def is_askable(config: Any) -> bool:
    """Return whether a run can be loaded without data from elsewhere."""
    return not INPUT_KINDS[config.task].opens_data or is_generated(config)


def read_stamp(path: Path) -> tuple[int, int]:
    """Return when a file was written, and its size; zeros if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def describe_config(config: Any) -> dict[str, Any]:
    """Return the settings in which runs differ."""
    model = getattr(config, "model", None)
    if not isinstance(config, TranslationConfig) or model is None:
        return {}
    score = model.transformer.source_score if model.decoder == "transformer" else model.attention.score
    return {
        "encoder": model.encoder,
        "decoder": model.decoder,
        "score": "" if model.decoder == "plain" else score,
        "size": model.size,
        "data": Path(config.data.text.partition(",")[0]).name,
        "source": config.data.source,
        "target": config.data.target,
    }


def name_paths(paths: Sequence[Path]) -> dict[str, Path]:
    """Return paths by their last part, with a number behind it if several share it.

    >>> list(name_paths([Path("a/run"), Path("b/run")]))
    ['run', 'run-2']
    """
    named: dict[str, Path] = {}
    for path in paths:
        name, number = path.resolve().name, 2
        while name in named:
            name, number = f"{path.resolve().name}-{number}", number + 1
        named[name] = path
    return named


class Runs(Mapping[str, Run]):
    """The runs by name. No other folder is ever opened."""

    def __init__(self, folders: Mapping[str, Path], limits: Limits) -> None:
        self.runs = {name: Run(name, folder, limits) for name, folder in folders.items()}

    def __getitem__(self, name: str) -> Run:
        if name not in self.runs:
            expected = f"one of {', '.join(self.runs) or '(none)'}"
            raise refuse(404, "run", repr(name[:100]), expected, "choose one of them")
        return self.runs[name]

    def __iter__(self) -> Any:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)


def split_paths(paths: Sequence[Path]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return run folders and recordings, by name, of the paths on the command line."""
    try:
        folders = [path for path in paths if path.is_dir()]
        files = [path for path in paths if path.is_file()]
        runs = [folder for folder in folders if (folder / "versions.json").is_file()]
    except OSError as error:
        got = f"{error.filename} ('{error.strerror}')"
        raise wrong("run", got, "what can be read", "check who may read it") from None
    for path in paths:
        if path not in folders and path not in files:
            raise wrong("run", f"{path}, which is not there", "a run folder or a recording", suggest_run(path))
    for folder in folders:
        if folder not in runs:
            raise refuse_folder(folder)
    return name_paths(folders), name_paths(files)
