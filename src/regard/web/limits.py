"""Limits of the server: how much it serves at once, and of what size."""

import math
from dataclasses import dataclass, fields

from regard.datasets.bounds import get_bound
from regard.errors import wrong


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the server, each of which can be set on the command line."""

    workers: int = get_bound("server", "workers")  # requests that are computed at the same time
    waiting: int = get_bound("server", "waiting")  # requests that wait for a worker
    followers: int = get_bound("server", "followers")  # pages that follow the metrics of a run
    seconds: float = float(get_bound("request", "seconds"))  # from a request to the end of its answer
    patience: float = float(get_bound("request", "patience"))  # for a body to arrive
    characters: int = get_bound("request", "characters")  # of a text
    tokens: int = get_bound("request", "tokens")  # of a text, and of its translation
    beam: int = get_bound("request", "beam")
    body: int = get_bound("request", "body bytes")  # of a question
    upload: int = get_bound("recording", "served bytes")  # of a recording that is sent
    file: int = get_bound("request", "file bytes")  # of an image or a sound
    pixels: int = get_bound("image", "served pixels")  # of an image
    listening: float = float(get_bound("sound", "served seconds"))  # seconds of a sound
    passage: int = get_bound("request", "passage")  # characters of a text to be asked about
    weights: int = get_bound("run folder", "weights bytes")  # of a checkpoint
    kept: int = get_bound("store", "bytes")  # of recordings that are kept for the page
    cells: int = get_bound("store", "cells")  # weights that are sent as one table; larger ones go by tiles

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not (value > 0 and math.isfinite(value)):
                raise wrong(entry.name, value, "more than 0", "leave it out for the usual limit")
