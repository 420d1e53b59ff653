"""Any score and normalizer of the catalog can be given to any task by a flag: it learns, or a sentence says why not."""

from functools import lru_cache
from typing import Any

import pytest
import torch

from regard.algebra.catalog import NORMALIZERS, SCORES
from regard.errors import InputError
from regard.tasks import import_task
from regard.training import DataShare
from regard.training.config import walk_fields

# Of each task as little data as will do.
SMALL = {
    "translation": {"data.size": "20", "data.held_out": "2", "model.size": "16", "recurrent.hidden": "16"}
    | {
        "attention.hidden": "8",
        "convolutional.size": "16",
        "transformer.layers": "1",
        "transformer.decoder_layers": "1",
    },
    "regression": {"points": "9"},
    "speech": {"data.size": "4", "data.held_out": "2", "listener.hidden": "8", "speller.hidden": "16"},
    "reading": {"data.size": "8", "data.held_out": "2", "reader.hidden": "8"},
    "digits": {"data.training": "16", "data.validation": "4"},
    "inversion": {"data.items": "8", "data.held_out": "2"},
    "next-vector": {"data.items": "20"},
    "captioning": {"data.scenes": "8", "data.held_out": "2", "channels": "4,4,4", "hidden": "16", "model.size": "16"},
    "vqa": {"data.most": "8", "data.held_out": "2", "pixels": "32", "channels": "4,4,4,4"},
    "memory": {"data.items": "8", "data.held_out": "2"},
}
# Where each task has a score: a preset that uses it, and the field.
PLACES = [
    ("translation", "bahdanau", "model.attention.score"),
    ("translation", "luong", "model.attention.score"),
    ("translation", "conv-tiny", "model.attention.score"),
    ("translation", "transformer-tiny", "model.transformer.score"),
    ("translation", "transformer-tiny", "model.transformer.source_score"),
    ("regression", "one-bandwidth", "model.score"),
    ("speech", "location", "speller.attention.score"),
    ("reading", "bidaf", "reader.score"),
    ("digits", "gated", "model.score"),
    ("digits", "pooling", "model.score"),
    ("digits", "additive-pooling", "model.score"),
    ("inversion", "bahdanau", "model.attention.score"),
    ("next-vector", "seven-steps", "model.score"),
    ("captioning", "soft", "model.score"),
    ("captioning", "reinforce", "model.score"),
    ("vqa", "stacked", "model.score"),
    ("vqa", "co-attention", "model.score"),
    ("vqa", "transformer", "model.score"),
    ("memory", "three-hops", "model.score"),
]
PREDICTED = "local-p"  # has a center for each query: a gaze, not a normalizer of all


def name_cases(places: list[tuple[str, str, str]]) -> list[Any]:
    return [pytest.param(*place, id="-".join(place)) for place in places]


def list_fields(task: str) -> set[str]:
    return {name for name, _ in walk_fields(import_task(task).default)}


@lru_cache(maxsize=1)
def open_task(task: str, preset: str) -> tuple[Any, Any, Any]:
    """Return a task over little data, its configuration, and its first batch."""
    config = import_task(task).configure(preset, (), SMALL[task])
    made = import_task(task).build_task(config)
    return made, config, made.epoch(0, DataShare())[0]


def check_learning(task: str, preset: str, field: str, name: str) -> None:
    """Check that the loss of one batch and all gradients are finite."""
    made, config, batch = open_task(task, preset)
    made.config = import_task(task).apply_changes(config, {field: name})
    torch.manual_seed(3)
    model = made.model().train()
    loss = made.loss(model, batch).total
    loss.backward()
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    assert loss.isfinite()
    assert gradients
    assert all(bool(one.isfinite().all()) for one in gradients)


@pytest.mark.parametrize(("task", "preset", "field"), name_cases(PLACES))
def test_any_score_goes_with_any_task(task: str, preset: str, field: str) -> None:
    for name in SCORES:
        check_learning(task, preset, field, name)


NORMALIZED = [(task, preset, field.replace("score", "normalizer")) for task, preset, field in PLACES]


@pytest.mark.parametrize(
    ("task", "preset", "field"), name_cases([one for one in NORMALIZED if one[2] in list_fields(one[0])])
)
def test_any_normalizer_goes_with_any_task(task: str, preset: str, field: str) -> None:
    """But those that need the row before go with decoders that step, and one needs a center: a sentence says so."""
    steps = "attention" in field and preset in ("bahdanau", "luong")
    refused = {PREDICTED} if steps else {PREDICTED, "monotonic", "hard-monotonic", "chunkwise"}
    for name in set(NORMALIZERS) - refused:
        check_learning(task, preset, field, name)
    for name in refused:
        with pytest.raises(InputError, match=rf"normalizer: got '?{name}\b.*, expected .*; fix: "):
            check_learning(task, preset, field, name)


def test_no_score_of_a_task_is_left_out() -> None:
    for task in SMALL:
        found = {name for name in list_fields(task) if name.endswith("score")}
        used = {field for own, _, field in PLACES if own == task}
        unused = {"model.transformer.score", "model.transformer.source_score"} if task == "inversion" else set()
        assert found - unused == used, task
