"""Inversion by command: all sequences right at the lengths trained, and the look runs against the grain."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from walking import walk

from regard.errors import InputError
from regard.tasks import import_task
from regard.tasks.inversion.config import InversionData
from regard.tasks.inversion.sequences import decode_letters, encode_letters, generate_splits

Regard = Callable[..., Any]
SMALL = {
    "data.symbols": 5,
    "data.shortest": 1,
    "data.longest": 4,
    "data.items": 960,
    "data.held_out": 40,
    "model.recurrent.hidden": 24,
    "model.attention.hidden": 16,
    "optimizer.rate": 0.02,
    "stop.epochs": 25,
    "every.log": 5,
    "every.save": 5,
}


def test_short_sequences_are_inverted_after_375_steps(regard: Regard) -> None:
    reports = walk(regard, "inversion", "invert", fields=SMALL, cut_at=12, item=("abc",))
    assert reports["lengths 1 to 4"]["exact"] >= 95
    assert set(reports) == {"lengths 1 to 4", "lengths 5 to 7", "length 8"}
    assert regard("predict", "run", "abd").output.startswith("dba, right")
    done = regard("predict", "run", "xyz")
    assert done.errors == "regard: item: got 'x', expected letters from a to e; fix: write abc, say\n"


@pytest.mark.parametrize(("rule", "wanted"), [("invert", "bac"), ("copy", "cab"), ("sort", "abc")])
def test_the_targets_are_what_the_rule_says(rule: str, wanted: str) -> None:
    learned = import_task("inversion").build_task(import_task("inversion").configure(None, (rule,), {}))
    config = learned.config.data
    sources, lengths, targets, target_lengths = learned.load_training(0)
    row = decode_letters(sources[0, : int(lengths[0]) - 1].tolist())
    said = decode_letters(targets[0, : int(target_lengths[0])].tolist())
    assert said == {"invert": row[::-1], "copy": row, "sort": "".join(sorted(row))}[rule]
    assert decode_letters(encode_letters("cab", config)) == "cab"
    from regard.tasks.inversion.sequences import apply_rule

    assert decode_letters(apply_rule(encode_letters("cab", config), config.rule)) == wanted


def rows_of(tensors: tuple[torch.Tensor, ...]) -> list[str]:
    return [decode_letters(row) for row in tensors[0].tolist()]


def test_no_sequence_that_is_tested_on_is_ever_learned_from() -> None:
    """Three letters make 363 sequences of up to five: twenty epochs of any seed see all but those held out."""
    few = InversionData(symbols=3, shortest=1, longest=5, items=500, held_out=12)
    sets = generate_splits(few)
    trained = {row for epoch in range(20) for row in rows_of(sets.load_training(epoch))}
    trained |= set(rows_of(generate_splits(replace(few, seed=2)).load_training(0)))
    validation, *tests = (rows_of(held) for held in (sets.validation, *sets.tests.values()))
    assert len(trained) > 300
    for held in (validation, *tests):
        assert len(held) == len(set(held)) > 5
        assert not trained & set(held)
    assert not set(validation) & set(tests[0])


def test_two_epochs_differ_and_an_epoch_is_the_same_whenever_it_is_asked_for() -> None:
    sets = generate_splits(InversionData())
    assert rows_of(sets.load_training(0))[:50] != rows_of(sets.load_training(1))[:50]
    assert torch.equal(sets.load_training(1)[0], sets.load_training(1)[0])


def test_letters_that_are_too_few_are_a_note_or_a_sentence() -> None:
    few = generate_splits(InversionData(symbols=3, shortest=1, longest=5, items=10, held_out=500))
    count = len(few.validation[0])
    assert f"validation: {count} sequences held out, not 500: there are no more" in few.notes
    with pytest.raises(InputError, match=r"data\.symbols: got 2 letters, of which no sequence of length 1 is for"):
        generate_splits(InversionData(symbols=2, shortest=1, longest=1))


def test_an_unknown_rule_is_one_sentence(regard: Regard) -> None:
    done = regard("train", "inversion", "invrt")
    assert done.code == 2
    assert done.errors.startswith("regard: data.rule: got 'invrt', expected one of invert, copy, sort; fix: write")
