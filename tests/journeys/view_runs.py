"""Runs of every kind that a page has a view for, none of them trained, and recordings."""

import sys
from pathlib import Path

import torch

from regard.inspect.recording import Recording

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))

from tiny_runs import make_run, make_untrained

OTHERS = {"looks": "vqa", "digits": "digits", "letters": "inversion", "curve": "regression", "vectors": "next-vector"}
RUNS = ("numbers", "scenes", "tones", "facts", "stories", *OTHERS)


def make_view_runs(folder: Path) -> None:
    """Write `RUNS`, a recording, and a file that is none."""
    make_run(folder / "numbers", "transformer")
    for name, task in (("scenes", "captioning"), ("tones", "speech"), ("facts", "reading")):
        make_untrained(folder / name, task)
    make_untrained(folder / "stories", "memory", **{"data.items": "8", "data.held_out": "4"})
    for name, task in OTHERS.items():
        make_untrained(folder / name, task, **({"data.scenes": "8", "data.held_out": "2"} if task == "vqa" else {}))
    Recording.from_weights({"site": torch.eye(3)}, queries=list("abc"), keys=list("xyz")).save(folder / "a.safetensors")
    (folder / "broken.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{{{{{{{{")
