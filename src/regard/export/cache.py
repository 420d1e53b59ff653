"""What CTranslate2 needs, made once and kept in the run folder."""

import shutil
from pathlib import Path

from regard.export.converter import to_ctranslate2
from regard.tasks.translation import Translator
from regard.training.storage import digest, locked, settle, storing

FOLDER = "ct2"
NAME = 16  # letters of a digest that tell weights apart


def cached(translator: Translator, run: Path, weights: Path) -> Path:
    """The folder for CTranslate2 of these weights. Of several processes one makes it, and the others wait."""
    place = run / FOLDER / digest(weights)[:NAME]
    if place.is_dir():
        return place
    with storing("engine", run / FOLDER):
        place.parent.mkdir(exist_ok=True)
        with locked(place.parent / ".lock"):
            if not place.is_dir():
                make(translator, place)
    return place


def make(translator: Translator, place: Path) -> None:
    """Makes it under another name first: a process that dies here leaves nothing that could be taken for a model."""
    temporary = place.with_name(f".{place.name}.making")
    shutil.rmtree(temporary, ignore_errors=True)
    to_ctranslate2(translator, temporary)
    settle(temporary)
    temporary.rename(place)
    settle(place.parent)
