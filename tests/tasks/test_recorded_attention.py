"""What made a weight of a prediction: by the formula that explains it, every weight of every task comes out."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.inspect.recording import Recording
from regard.models import EncoderDecoder
from regard.tasks.data import END

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))

from tiny_runs import make_untrained

STORIES = {"data.items": "8", "data.held_out": "4"}
PICTURES = {"data.questions": "scenes", "data.scenes": "8", "data.held_out": "2", "model.size": "8", "model.heads": "2"}
# Task, settings, and how the score of its attention is made up.
TASKS = {
    "captioning, soft": ("captioning", {}, "tanh"),
    "captioning, hard": ("captioning", {"model.attention": "reinforce"}, "tanh"),
    "speech, location": ("speech", {}, "tanh"),
    "speech, coverage": (
        "speech",
        {"speller.attention.location": "false", "speller.attention.coverage": "true"},
        "tanh",
    ),
    "speech, monotonic": (
        "speech",
        {"speller.attention.location": "false", "speller.attention.normalizer": "monotonic"},
        "tanh",
    ),
    "reading": ("reading", {}, "dot"),
    "vqa, stacked": ("vqa", {**PICTURES, "model.kind": "stacked"}, "tanh"),
    "vqa, co-attention": ("vqa", {**PICTURES, "model.kind": "co-attention"}, "dot"),
    "vqa, transformer": ("vqa", {**PICTURES, "model.kind": "transformer"}, "dot"),
    "memory": ("memory", STORIES, "dot"),
}
STEPWISE = ("speech, location", "speech, coverage", "vqa, stacked")  # keys or factors that change from step to step


@pytest.mark.parametrize("name", TASKS)
def test_every_weight_of_a_prediction_is_explained(name: str, tmp_path: Path) -> None:
    task, settings, form = TASKS[name]
    make_untrained(tmp_path / "run", task, **settings)
    loaded = regard.load(tmp_path / "run")
    if task == "speech":
        forbid_end(loaded.predictor.model)
    prediction = loaded.predict()
    recording = prediction.recording
    assert recording is not None
    first = next(iter(recording))
    assert repr(prediction.explain(0, 1)) == repr(recording[first].explain(0, 0, 1))
    with pytest.raises(regard.InputError, match=f"site: got 'nowhere', expected one of {first}"):
        prediction.explain(0, 1, site="nowhere")
    if name in STEPWISE:
        assert all(one.origin is not None and one.origin.stepwise for one in recording.values())
    check_weights(recording, form)
    recording.save(tmp_path / "kept.safetensors")
    check_weights(Recording.load(tmp_path / "kept.safetensors"), form)


def forbid_end(model: EncoderDecoder[Any]) -> None:
    """Let a recognizer that was never trained write many symbols, not one."""
    with torch.no_grad():
        model.decoder.output.bias[END] -= 20


def check_weights(recording: Recording, form: str) -> None:
    for one in recording.values():
        assert one.origin is not None
        assert one.origin.form == form
        heads, queries, keys = one.shape
        for head, query in ((0, 0), (heads - 1, queries - 1)):
            for key in range(keys):
                made = one.explain(head, query, key)
                assert made.facts is not None
                assert made.facts.norm is not None
                recomputed = made.facts.recompute_weight()
                assert recomputed is None or recomputed == pytest.approx(made.weight, rel=2e-3, abs=1e-5)
