"""How much is served at once, and of what size. Beyond a limit there is a sentence, not a stall."""

import math
from dataclasses import dataclass, fields

from regard.datasets.bounds import most
from regard.errors import wrong


@dataclass(frozen=True, slots=True)
class Limits:
    """All of them; every one can be set on the command line of whoever serves."""

    workers: int = most("server", "workers")  # requests that are computed at the same time
    waiting: int = most("server", "waiting")  # requests that wait for a worker
    followers: int = most("server", "followers")  # pages that follow the curves of a run
    seconds: float = float(most("request", "seconds"))  # from a request to the end of its answer
    patience: float = float(most("request", "patience"))  # for a body to arrive
    characters: int = most("request", "characters")  # of a text
    tokens: int = most("request", "tokens")  # of a text, and of its translation
    beam: int = most("request", "beam")
    body: int = most("request", "body bytes")  # of a question
    upload: int = most("recording", "served bytes")  # of a recording that is sent
    file: int = most("request", "file bytes")  # of an image or a sound
    pixels: int = most("image", "served pixels")  # of an image
    listening: float = float(most("sound", "served seconds"))  # seconds of a sound
    passage: int = most("request", "passage")  # characters of a text to be asked about
    weights: int = most("run folder", "weights bytes")  # of a checkpoint
    kept: int = most("store", "bytes")  # of recordings that are kept for the page
    cells: int = most("store", "cells")  # weights that are sent as one table; larger ones go by tiles

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not (value > 0 and math.isfinite(value)):
                raise wrong(entry.name, value, "more than 0", "leave it out for the usual limit")
