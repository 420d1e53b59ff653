"""What CTranslate2 needs, made once and kept in the run folder."""

from pathlib import Path

from regard.export.converter import to_ctranslate2
from regard.tasks.translation import Translator
from regard.training.storage import compute_sha256, create_atomically, lock_file, wrap_storage_errors

FOLDER = "ct2"
DIGEST_LENGTH = 16  # letters of a digest that tell weights apart


def convert_once(translator: Translator, run: Path, weights: Path) -> Path:
    """The folder for CTranslate2 of these weights. Of several processes one makes it, and the others wait."""
    place = run / FOLDER / compute_sha256(weights)[:DIGEST_LENGTH]
    if place.is_dir():
        return place
    with wrap_storage_errors("engine", run / FOLDER):
        place.parent.mkdir(exist_ok=True)
        with lock_file(place.parent / ".lock"):
            if not place.is_dir():
                with create_atomically(place) as temporary:
                    to_ctranslate2(translator, temporary)
    return place
