"""How much is served at once, and of what size. Beyond a limit there is a sentence, not a stall."""

from dataclasses import dataclass, fields

from regard.errors import wrong


@dataclass(frozen=True, slots=True)
class Limits:
    """All of them; every one can be set on the command line of whoever serves."""

    workers: int = 2  # requests that are computed at the same time
    waiting: int = 64  # requests that wait for a worker
    followers: int = 64  # pages that follow the curves of a run
    seconds: float = 30.0  # from a request to the end of its answer
    patience: float = 10.0  # for a body to arrive
    characters: int = 2000  # of a text
    tokens: int = 512  # of a text, and of its translation
    beam: int = 16
    body: int = 2**16  # bytes of a question
    upload: int = 2**26  # bytes of a recording that is sent
    file: int = 2**24  # bytes of an image or a sound
    pixels: int = 2**25  # of an image
    listening: float = 60.0  # seconds of a sound
    passage: int = 2**14  # characters of a text to be asked about
    weights: int = 2**32  # bytes of a checkpoint
    kept: int = 2**28  # bytes of recordings that are kept for the page
    cells: int = 2**20  # weights that are sent as one table; larger ones go by tiles

    def __post_init__(self) -> None:
        for entry in fields(self):
            if getattr(self, entry.name) <= 0:
                raise wrong(entry.name, getattr(self, entry.name), "more than 0", "leave it out for the usual limit")
