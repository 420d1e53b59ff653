"""Check a run folder before a model is loaded from it.

A configuration may ask for anything. So numbers in it are limited, files must be inside the folder and of limited
size, and `regard.tasks.prediction` compares the model with the weights before it takes memory for it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.datasets.bounds import check_file, get_bound
from regard.errors import InputError, RegardError, wrong
from regard.inspect.display.fields import format_value
from regard.tasks.prediction import WEIGHTS
from regard.tasks.speech.features import SpectrogramConfig
from regard.training.config import DOTS, find_crowded_line
from regard.training.run_folder import format_resume_command
from regard.web.limits import Limits
from regard.web.responses import LOG, RefusedError, refuse

TEXT = get_bound("run folder", "config bytes")
WORDS = get_bound("run folder", "file bytes")  # of a vocabulary
ENTRIES = get_bound("run folder", "entries")
NUMBER = get_bound("run folder", "number")  # largest number of a configuration
NUMBERS = {  # and of fields with these names
    name: get_bound("run folder", name)
    for name in ("seed", "layers", "hops", "pixels", "rate", "window", "hop", "filters")
}


@contextmanager
def report_run_errors(run: Path, name: str) -> Iterator[None]:
    """Turn any error about the files of a run into one message, with the run's name in place of its folder's path."""
    try:
        yield
    except RefusedError as error:
        raise RefusedError(error.status, hide_path(str(error), run, name), wait=error.wait) from None
    except RegardError as error:
        raise InputError(hide_path(str(error), run, name)) from None
    except OSError as error:
        got = f"{name}, which cannot be read ('{error.strerror}')"
        raise refuse(409, "run", got, "a run folder", "check who may read its files") from None
    except Exception as error:  # its files can be anything: what they raise is not a fault of the server
        LOG.warning("run %s cannot be opened: %s: %s", name, type(error).__name__, str(error)[:200])
        got = f"{name}, which cannot be opened ({type(error).__name__})"
        raise refuse(409, "run", got, "a folder that regard train made", "restore it from a copy") from None


def hide_path(text: str, run: Path, name: str) -> str:
    """Return a sentence with the name of a run in place of the path of its folder.

    >>> hide_path("config: got /a/b/config.toml, expected …", Path("/a/b"), "b")
    'config: got b/config.toml, expected …'
    """
    for path in (str(run.resolve()), str(run.absolute()), str(run)):
        text = text.replace(path, name) if len(path) > 1 else text
    return text


def resolve_inside(run: Path, name: str, largest: int) -> Path:
    """Return the path of a file that is in the folder, plain and not too large; or that does not exist."""
    path = (run / name).resolve()
    if not path.is_relative_to(run.resolve()):
        raise refuse(403, "run", f"{name}, which leads out of its folder", "a file in it", "copy the file into it")
    if path.exists() and not path.is_dir():
        check_file("run", path, largest, name)
    return path


def vet_texts(run: Path) -> None:
    """Check the small files, before anything is parsed from them."""
    resolve_inside(run, "versions.json", TEXT)
    config = resolve_inside(run, "config.toml", TEXT)
    if config.is_file():
        vet_dots(config.read_text(encoding="utf-8", errors="replace"))
    entries = list(islice(chain(run.iterdir(), (run / "vocabulary").glob("*")), ENTRIES + 1))
    if len(entries) > ENTRIES:
        raise wrong("run", f"more than {ENTRIES:,} files", f"at most {ENTRIES:,}", "check the folder")
    for path in entries:
        if path.suffix not in (".safetensors", ".jsonl") and not path.is_dir():
            resolve_inside(run, str(path.relative_to(run)), WORDS)


def vet_dots(text: str) -> None:
    """Raise if a line has a key of very many parts."""
    crowded = find_crowded_line(text)
    if crowded:
        got = f"{crowded[1]:,} dots in line {crowded[0]} of config.toml"
        raise wrong("run", got, f"at most {DOTS}", "restore the file from a copy")


def vet_config(config: Any, limits: Limits) -> None:
    """Raise if a number is so large that building the model or its features would take too much."""
    for entry in fields(config):
        if entry.name != "training":
            vet_numbers(getattr(config, entry.name), entry.name)
    features = getattr(config, "features", None)
    if isinstance(features, SpectrogramConfig):
        frames = features.count_frames(math.ceil(limits.listening * features.rate))
        sizes = {"bank": features.filters * features.fft_size, "spectrum": frames * features.fft_size}
        for name, size in sizes.items():
            if size > get_bound("run folder", name):
                got = f"{features.window} ms every {features.hop} ms at {features.rate} samples a second"
                expected = f"at most {get_bound('run folder', name):,} numbers of its {name}"
                raise wrong("features", got, expected, "use 25 and 10 ms")


def vet_model(run: Path, largest: int) -> None:
    """Raise unless there are weights, of at most `largest` bytes."""
    if not resolve_inside(run, WEIGHTS, largest).is_file():
        raise refuse(409, "run", "no weights yet", "at least one checkpoint", f"wait, or: {format_resume_command(run)}")


def vet_numbers(value: Any, name: str) -> None:
    """Raise if a number in a part of a configuration is too large."""
    if is_dataclass(value):
        for entry in fields(value):
            vet_numbers(getattr(value, entry.name), f"{name}.{entry.name}")
    elif isinstance(value, list | tuple):
        for one in value:
            vet_numbers(one, name)
    elif isinstance(value, int | float):
        largest = next((largest for end, largest in NUMBERS.items() if name.endswith(end)), NUMBER)
        if not -largest <= value <= largest:
            raise wrong(name, format_value(value), f"at most {largest:,}", "check the run")
