"""What CTranslate2 needs, made once and kept in the run folder."""

from pathlib import Path

from regard.export.converter import to_ctranslate2
from regard.tasks.translation import Translator
from regard.training.storage import appearing, digest, locked, storing

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
                with appearing(place) as temporary:
                    to_ctranslate2(translator, temporary)
    return place
