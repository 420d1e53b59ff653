"""Inversion by command: all sequences right at the lengths trained, and the look runs against the grain."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from walking import walk

from regard.tasks import kit
from regard.tasks.inversion.sequences import numbers_of, spelled

Regard = Callable[..., Any]
SMALL = {
    "data.symbols": 4,
    "data.shortest": 1,
    "data.longest": 3,
    "data.items": 640,
    "data.held_out": 40,
    "model.recurrent.hidden": 24,
    "model.reading.hidden": 16,
    "optimizer.rate": 0.02,
    "stop.epochs": 25,
    "every.log": 5,
    "every.save": 5,
}


def test_short_sequences_are_inverted_after_250_steps(regard: Regard) -> None:
    reports = walk(regard, "inversion", "invert", fields=SMALL, cut_at=12, item=("abc",))
    assert reports["lengths 1 to 3"]["exact"] >= 95
    assert set(reports) == {"lengths 1 to 3", "lengths 4 to 5", "length 6"}
    assert regard("predict", "run", "abd").output.startswith("dba, right")
    done = regard("predict", "run", "xyz")
    assert done.errors == "regard: item: got 'x', expected letters from a to d; fix: write abc, say\n"


@pytest.mark.parametrize(("rule", "wanted"), [("invert", "bac"), ("copy", "cab"), ("sort", "abc")])
def test_the_targets_are_what_the_rule_says(rule: str, wanted: str) -> None:
    learned = kit("inversion").task(kit("inversion").configured(None, (rule,), {}))
    config = learned.config.data
    sources, lengths, targets, target_lengths = learned.training(0)
    row = spelled(sources[0, : int(lengths[0]) - 1].tolist())
    said = spelled(targets[0, : int(target_lengths[0])].tolist())
    assert said == {"invert": row[::-1], "copy": row, "sort": "".join(sorted(row))}[rule]
    assert spelled(numbers_of("cab", config)) == "cab"
    from regard.tasks.inversion.sequences import rewritten

    assert spelled(rewritten(numbers_of("cab", config), config.rule)) == wanted


def test_no_sequence_that_is_tested_on_decides_what_is_learned() -> None:
    """Two epochs differ, and the held-out sets depend on neither."""
    learned = kit("inversion").task(kit("inversion").configured(None, (), {}))
    assert not torch.equal(learned.sets.training(0)[0][:50], learned.sets.training(1)[0][:50])
    assert torch.equal(learned.sets.training(1)[0], learned.sets.training(1)[0])


def test_an_unknown_rule_is_one_sentence(regard: Regard) -> None:
    done = regard("train", "inversion", "invrt")
    assert done.code == 2
    assert done.errors.startswith("regard: data.rule: got 'invrt', expected one of invert, copy, sort; fix: write")
