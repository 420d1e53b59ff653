"""The run folders that are served: what they are, and their models, opened when they are first asked for."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError, wrong
from regard.tasks import config_of, kit
from regard.tasks.predicting import WEIGHTS, Prediction
from regard.tasks.translation import TranslationConfig, Translator
from regard.tasks.translation.predictor import first_source
from regard.tasks.translation.text import ENDLESS
from regard.web.answers import refuse
from regard.web.asking import WAYS, Item
from regard.web.limits import Limits
from regard.web.vetting import vet_config, vet_model, vet_texts, vetting
from regard.web.work import Ticket


class Opened(NamedTuple):
    """What was trained, and the time and size of the file it came from: a run in progress gets better ones."""

    stamp: tuple[int, int]
    model: Any


class Run:
    """One run folder."""

    def __init__(self, name: str, folder: Path, limits: Limits) -> None:
        self.name, self.folder, self.limits = name, folder, limits
        self.lock = threading.Lock()
        self.opened: Opened | None = None

    def config(self) -> Any:
        """Its settings, read anew: whoever resumes a run may change them."""
        vet_texts(self.folder)
        config = config_of(self.folder)
        vet_config(config, self.limits)
        return config

    def facts(self, ticket: Ticket) -> dict[str, Any]:
        """What the page shows of it. A folder that cannot be used says why instead; the others are as they were."""
        ticket.check()
        try:
            with vetting(self.folder, self.name):
                config = self.config()
                return {"name": self.name, "ready": (self.folder / WEIGHTS).is_file(), **described(config)}
        except RegardError as error:
            return {"name": self.name, "error": str(error)}

    def translator(self) -> Translator:
        """The translator of the best weights so far."""
        translator: Translator = self.open(("translation",), Translator.load)
        return translator

    def ask(self, item: Item | None) -> Prediction:
        """What it makes of something; of an example that was held out, where nothing is given."""
        predictor = self.open(WAYS, lambda config, folder: kit(config.task).load(config, folder))
        config = predictor.config
        if item is not None:
            return WAYS[config.task].ask(predictor, item, self.limits)
        if not generated(config):
            raise refuse(409, "example", "data that lie outside of the run", "generated ones", "choose a file")
        prediction: Prediction = predictor.predict(())
        return prediction

    def open(self, tasks: Collection[str], load: Callable[[Any, Path], Any]) -> Any:
        """What was trained, with the best weights so far. One thread opens it, others wait."""
        with self.lock, vetting(self.folder, self.name):
            config = self.config()
            if config.task not in tasks:
                got = f"{self.name}, a run of {config.task}"
                raise refuse(409, "run", got, f"one of {', '.join(tasks)}", "choose another, or open its curves")
            stamp = stamp_of(self.folder / WEIGHTS)
            if self.opened is None or self.opened.stamp != stamp:
                vet_model(self.folder, self.limits.weights)
                served = replace(config, training=replace(config.training, device="cpu"))
                self.opened = Opened(stamp, load(served, self.folder))
            return self.opened.model


def described(config: Any) -> dict[str, Any]:
    """What a run is of, how it is asked, and an example where the task brings its data along."""
    found = {"task": config.task, "about": about(config)}
    if isinstance(config, TranslationConfig) and config.data.text in ENDLESS:
        found["sample"] = first_source(replace(config, data=replace(config.data, held_out=1)))
    if config.task in WAYS:
        way = WAYS[config.task]
        found |= {"takes": way.takes, "questioned": way.questioned, "example": generated(config)}
    return found


def generated(config: Any) -> bool:
    """Whether the data are those that a task brings along: nothing else that a folder names is opened."""
    return bool(config.data == kit(config.task).DEFAULT.data)


def stamp_of(path: Path) -> tuple[int, int]:
    """When a file was written, and its size; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def about(config: Any) -> dict[str, Any]:
    """The settings that tell runs apart."""
    model = getattr(config, "model", None)
    if not isinstance(config, TranslationConfig) or model is None:
        return {}
    score = model.transformer.source_score if model.decoder == "transformer" else model.reading.score
    return {
        "encoder": model.encoder,
        "decoder": model.decoder,
        "score": "" if model.decoder == "plain" else score,
        "size": model.size,
        "data": Path(config.data.text.partition(",")[0]).name,
        "source": config.data.source,
        "target": config.data.target,
    }


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """Paths by their last part; where several share it, by a number behind it.

    >>> list(named([Path("a/run"), Path("b/run")]))
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


def sorted_out(paths: Sequence[Path]) -> tuple[dict[str, Path], dict[str, Path]]:
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
    return named(folders), named(files)
