"""`regard verify package.module:Name` takes a part of any family, and says what is wrong with it."""

import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli.verify import load_part
from regard.errors import InputError

PARTS = """
import torch
from dataclasses import dataclass
from regard import Bias, Dense, Mask, Normalizer, Prior, Aggregate, Softmax, Window
from regard.algebra.aggregates import AggregateResult

class Recent(Bias):
    def forward(self, pairs):
        return -0.3 * (pairs.position - pairs.column).abs()

class ByHead(Bias):
    def __init__(self, heads):
        super().__init__()
        self.slope = torch.nn.Parameter(torch.ones(heads, 1, 1))
    def forward(self, pairs):
        return self.slope * (pairs.column - pairs.position)

class Shifted(Recent):
    def form(self, *, causal, shift_invariant, keys):
        return "column"
    def column(self, pairs):
        return 0.3 * pairs.column[0]

class Strict(Mask):
    def allows(self, pairs):
        return pairs.column < pairs.position

class Narrow(Strict):
    width = 2

class Halved(Normalizer):
    def forward(self, scores, allowed, pairs):
        return 0.5 * Softmax()(scores, allowed, pairs)

class NoRows(Halved):
    whole_rows = False
    def forward(self, scores, allowed, pairs):
        return super().forward(scores, allowed, pairs) / scores.shape[-1]

class Sharper(Aggregate):
    def forward(self, weights, pairs, seed):
        return AggregateResult(weights.square())

class Dice(Aggregate):
    def forward(self, weights, pairs, seed):
        return AggregateResult(weights * torch.rand_like(weights))

window = Window(2, 1)
prior = Prior(torch.linspace(-1, 1, 6))
dense = Dense(torch.randn(4, 5, 6))
number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with parts, one for each test, so that none is found in the cache of modules."""
    name = f"parts_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("Recent", ()),
        ("ByHead", ()),
        ("Strict", ()),
        ("Halved", ()),
        ("Sharper", ()),
        ("window", ()),
        ("prior", ("--keys", 6)),
        ("dense", ("--queries", 5, "--keys", 6, "--heads", 4)),
    ],
)
def test_right_parts_of_every_family_agree(regard: Any, own: str, name: str, flags: tuple[object, ...]) -> None:
    done = regard("verify", f"{own}:{name}", *flags)
    assert done.code == 0, done
    assert "paths agree with the definition" in done.output


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Shifted", "wrong: Shifted.form: got 'column' for causal=False, shift_invariant=False, but the number of a"),
        ("Narrow", "wrong: Narrow.width: got 2, but a query sees 10 keys"),
        ("NoRows", "wrong: NoRows.whole_rows: got False, but weights change if columns that are hidden are left out"),
        ("Dice", "wrong: Dice.random: got False, but it chooses differently each time"),
    ],
)
def test_wrong_parts_are_named_and_the_exit_code_is_1(regard: Any, own: str, name: str, sentence: str) -> None:
    done = regard("verify", f"{own}:{name}")
    assert done.code == 1
    assert sentence in done.output


def test_a_part_of_another_size_is_one_sentence(regard: Any, own: str) -> None:
    done = regard("verify", f"{own}:prior")
    assert done.code == 2
    assert "bias.prior: got 6 numbers, expected keys=11; fix: give one number for each key" in done.errors


def test_what_is_no_part_is_told_what_it_must_be(own: str) -> None:
    with pytest.raises(InputError, match=r"expected one of regard.Score, regard.Bias, regard.Mask, .*fix: subclass"):
        load_part(f"{own}:number")


def test_the_help_says_which_parts_it_takes(regard: Any) -> None:
    shown = " ".join(word for word in regard("verify", "--help").output.split() if word != "│")  # drawn around it
    for words in ("Your own score", "bias, mask", "normalizer or aggregate", "package.module:Name"):
        assert words in shown, shown
