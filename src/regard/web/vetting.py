"""A run folder is looked at before it is opened: what it asks for must be what it holds.

A configuration can ask for anything. So every number in it is bearable, every file is inside the folder and of a
bearable size, and `regard.tasks.predicting` compares the model with the weights before it takes memory for it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.bounds import check_file, most
from regard.errors import InputError, RegardError, wrong
from regard.tasks.predicting import WEIGHTS
from regard.tasks.speech.features import Features
from regard.training.config import DOTS, find_crowded_line
from regard.training.folder import how_to_go_on
from regard.web.answers import LOG, RefusedError, refuse
from regard.web.bodies import shown
from regard.web.limits import Limits

TEXT = most("run folder", "config bytes")
WORDS = most("run folder", "file bytes")  # of a vocabulary
ENTRIES = most("run folder", "entries")
NUMBER = most("run folder", "number")  # largest number of a configuration
NUMBERS = {  # and of these
    name: most("run folder", name) for name in ("seed", "layers", "hops", "pixels", "rate", "window", "hop", "filters")
}


@contextmanager
def vetting(run: Path, name: str) -> Iterator[None]:
    """Turn whatever the files of a folder lead to into one sentence about this run; others are served as before.

    The run has its name in it, and not the path that the folder has on this machine.
    """
    try:
        yield
    except RefusedError as error:
        raise RefusedError(error.status, without_path(str(error), run, name), wait=error.wait) from None
    except RegardError as error:
        raise InputError(without_path(str(error), run, name)) from None
    except OSError as error:
        got = f"{name}, which cannot be read ('{error.strerror}')"
        raise refuse(409, "run", got, "a run folder", "check who may read its files") from None
    except Exception as error:  # its files can be anything: what they make of a reader is no fault of the server
        LOG.warning("run %s cannot be opened: %s: %s", name, type(error).__name__, str(error)[:200])
        got = f"{name}, which cannot be opened ({type(error).__name__})"
        raise refuse(409, "run", got, "a folder that regard train made", "restore it from a copy") from None


def without_path(text: str, run: Path, name: str) -> str:
    """Return a sentence with the name of a run in place of the path of its folder.

    >>> without_path("config: got /a/b/config.toml, expected …", Path("/a/b"), "b")
    'config: got b/config.toml, expected …'
    """
    for path in (str(run.resolve()), str(run.absolute()), str(run)):
        text = text.replace(path, name) if len(path) > 1 else text
    return text


def inside(run: Path, name: str, largest: int) -> Path:
    """A file of the folder that is really in it, a plain one, and not larger than that; or one that is not there."""
    path = (run / name).resolve()
    if not path.is_relative_to(run.resolve()):
        raise refuse(403, "run", f"{name}, which leads out of its folder", "a file in it", "copy the file into it")
    if path.exists() and not path.is_dir():
        check_file("run", path, largest, name)
    return path


def vet_texts(run: Path) -> None:
    """The small files, before anything is read from them."""
    for name in ("versions.json", "config.toml"):
        path = inside(run, name, TEXT)
    if path.is_file():
        vet_dots(path.read_text(encoding="utf-8", errors="replace"))
    entries = list(islice(chain(run.iterdir(), (run / "vocabulary").glob("*")), ENTRIES + 1))
    if len(entries) > ENTRIES:
        raise wrong("run", f"more than {ENTRIES:,} files", f"at most {ENTRIES:,}", "check the folder")
    for path in entries:
        if path.suffix not in (".safetensors", ".jsonl") and not path.is_dir():
            inside(run, str(path.relative_to(run)), WORDS)


def vet_dots(text: str) -> None:
    """No line has a key of very many parts."""
    found = find_crowded_line(text)
    if found:
        got = f"{found[1]:,} dots in line {found[0]} of config.toml"
        raise wrong("run", got, f"at most {DOTS}", "restore the file from a copy")


def vet_config(config: Any, limits: Limits) -> None:
    """No number of it is so large that only building or hearing would tell."""
    for entry in fields(config):
        if entry.name != "training":
            vet_numbers(getattr(config, entry.name), entry.name)
    features = getattr(config, "features", None)
    if isinstance(features, Features):
        frames = features.frames(math.ceil(limits.listening * features.rate))
        sizes = {"bank": features.filters * features.points, "spectrum": frames * features.points}
        for name, size in sizes.items():
            if size > most("run folder", name):
                got = f"{features.window} ms every {features.hop} ms at {features.rate} samples a second"
                expected = f"at most {most('run folder', name):,} numbers of its {name}"
                raise wrong("features", got, expected, "use 25 and 10 ms")


def vet_model(run: Path, largest: int) -> None:
    """There are weights, of not more than so many bytes."""
    if not inside(run, WEIGHTS, largest).is_file():
        raise refuse(409, "run", "no weights yet", "at least one checkpoint", f"wait, or: {how_to_go_on(run)}")


def vet_numbers(value: Any, name: str) -> None:
    """No number in it is too large."""
    if is_dataclass(value):
        for entry in fields(value):
            vet_numbers(getattr(value, entry.name), f"{name}.{entry.name}")
    elif isinstance(value, list | tuple):
        for one in value:
            vet_numbers(one, name)
    elif isinstance(value, int | float):
        largest = next((largest for end, largest in NUMBERS.items() if name.endswith(end)), NUMBER)
        if not -largest <= value <= largest:
            raise wrong(name, shown(value), f"at most {largest:,}", "check the run")
