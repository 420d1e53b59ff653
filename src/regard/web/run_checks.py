"""Check a run folder before a model is loaded from it.

Files must be inside the folder and of limited size. A configuration may ask for anything: `regard.training.config`
limits its numbers, and `regard.tasks.prediction` compares the model with the weights before it takes memory for it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.datasets.bounds import check_file, get_bound
from regard.errors import InputError, RegardError, wrong
from regard.tasks.prediction import WEIGHTS
from regard.tasks.speech.features import SpectrogramConfig
from regard.training.config import TEXT
from regard.training.run_folder import format_resume_command
from regard.web.limits import Limits
from regard.web.responses import LOG, RefusedError, refuse

WORDS = get_bound("run folder", "file bytes")  # of a vocabulary
ENTRIES = get_bound("run folder", "entries")


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
    resolve_inside(run, "config.toml", TEXT)
    entries = list(islice(chain(run.iterdir(), (run / "vocabulary").glob("*")), ENTRIES + 1))
    if len(entries) > ENTRIES:
        raise wrong("run", f"more than {ENTRIES:,} files", f"at most {ENTRIES:,}", "check the folder")
    for path in entries:
        if path.suffix not in (".safetensors", ".jsonl") and not path.is_dir():
            resolve_inside(run, str(path.relative_to(run)), WORDS)


def vet_config(config: Any, limits: Limits) -> None:
    """Raise if the features of a sound would take too much; `configure` has checked each number by itself."""
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
