"""The run folders that are served: what they are, and their models, opened when they are first asked for."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError, wrong
from regard.tasks import import_task, read_config
from regard.tasks.prediction import WEIGHTS, Prediction
from regard.tasks.translation import TranslationConfig, Translator
from regard.tasks.translation.predictor import read_first_source
from regard.tasks.translation.text import ENDLESS
from regard.web.inputs import INPUT_KINDS, RunInput
from regard.web.limits import Limits
from regard.web.responses import refuse
from regard.web.run_checks import report_run_errors, vet_config, vet_model, vet_texts
from regard.web.workers import Ticket


class LoadedModel(NamedTuple):
    """What was trained, and the time and size of the file it came from: a run in progress gets better ones."""

    stamp: tuple[int, int]
    model: Any


class Run:
    """One run folder."""

    def __init__(self, name: str, folder: Path, limits: Limits) -> None:
        self.name, self.folder, self.limits = name, folder, limits
        self.lock = threading.Lock()
        self.opened: LoadedModel | None = None

    def read_config(self) -> Any:
        """Its settings, read anew: whoever resumes a run may change them."""
        vet_texts(self.folder)
        config = read_config(self.folder)
        vet_config(config, self.limits)
        return config

    def describe(self, ticket: Ticket) -> dict[str, Any]:
        """What the page shows of it. A folder that cannot be used says why instead; the others are as they were."""
        ticket.check()
        try:
            with report_run_errors(self.folder, self.name):
                config = self.read_config()
                return {"name": self.name, "ready": (self.folder / WEIGHTS).is_file(), **describe_run(config)}
        except RegardError as error:
            return {"name": self.name, "error": str(error)}

    def load_translator(self) -> Translator:
        """The translator of the best weights so far."""
        translator: Translator = self.load_model(("translation",), Translator.load)
        return translator

    def ask(self, item: RunInput | None) -> Prediction:
        """What it makes of something; of an example that was held out, where nothing is given."""
        predictor = self.load_model(INPUT_KINDS, lambda config, folder: import_task(config.task).load(config, folder))
        config = predictor.config
        if item is not None:
            return INPUT_KINDS[config.task].predict(predictor, item, self.limits)
        if not is_generated(config):
            raise refuse(409, "example", "data that lie outside of the run", "generated ones", "choose a file")
        prediction: Prediction = predictor.predict(())
        return prediction

    def load_model(self, tasks: Collection[str], load: Callable[[Any, Path], Any]) -> Any:
        """What was trained, with the best weights so far. One thread opens it, others wait."""
        with self.lock, report_run_errors(self.folder, self.name):
            config = self.read_config()
            if config.task not in tasks:
                got = f"{self.name}, a run of {config.task}"
                raise refuse(409, "run", got, f"one of {', '.join(tasks)}", "choose another, or open its curves")
            stamp = read_stamp(self.folder / WEIGHTS)
            if self.opened is None or self.opened.stamp != stamp:
                vet_model(self.folder, self.limits.weights)
                served = replace(config, training=replace(config.training, device="cpu"))
                self.opened = LoadedModel(stamp, load(served, self.folder))
            return self.opened.model


def describe_run(config: Any) -> dict[str, Any]:
    """What a run is of, how it is asked, and an example where the task brings its data along."""
    found = {"task": config.task, "about": describe_config(config)}
    if isinstance(config, TranslationConfig) and config.data.text in ENDLESS:
        found["sample"] = read_first_source(replace(config, data=replace(config.data, held_out=1)))
    if config.task in INPUT_KINDS:
        way = INPUT_KINDS[config.task]
        found |= {"takes": way.takes, "questioned": way.needs_question, "example": is_generated(config)}
    return found


def is_generated(config: Any) -> bool:
    """Whether the data are those that a task brings along: nothing else that a folder names is opened."""
    return bool(config.data == import_task(config.task).default.data)


def read_stamp(path: Path) -> tuple[int, int]:
    """When a file was written, and its size; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def describe_config(config: Any) -> dict[str, Any]:
    """The settings that tell runs apart."""
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
    """Paths by their last part; where several share it, by a number behind it.

    >>> list(name_paths([Path("a/run"), Path("b/run")]))
    ['run', 'run-2']
    """
    found: dict[str, Path] = {}
    for path in paths:
        name, number = path.resolve().name, 2
        while name in found:
            name, number = f"{path.resolve().name}-{number}", number + 1
        found[name] = path
    return found


class Runs(Mapping[str, Run]):
    """All of them by name. No other folder is ever looked into."""

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
    """Run folders and recordings, by name, from what was typed."""
    try:
        folders = [path for path in paths if path.is_dir()]
        files = [path for path in paths if path.is_file()]
        runs = [folder for folder in folders if (folder / "versions.json").is_file()]
    except OSError as error:
        got = f"{error.filename} ('{error.strerror}')"
        raise wrong("run", got, "what can be read", "check who may read it") from None
    for path in paths:
        if path not in folders and path not in files:
            raise wrong("run", f"{path}, which is not there", "a run folder or a recording", "check the path")
    for folder in folders:
        if folder not in runs:
            raise wrong("run", f"{folder}, which is no run folder", "a folder that regard train made", "check the path")
    return name_paths(folders), name_paths(files)
