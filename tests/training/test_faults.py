"""Faults at chosen operations, not at random times: nothing is lost and nobody waits for ever.

A few dozen here; all of them by `make kills`, which writes docs/faults.md.
"""

from pathlib import Path

import pytest
from fault_table import attempts, outcome


@pytest.mark.parametrize(
    ("kind", "every", "offset"),
    [
        ("kill", 31, 7),
        ("resume", 13, 3),
        ("full", 53, 11),
        ("vanish", 97, 40),
        ("change", 113, 50),
    ],
)
def test_whatever_happens_to_files_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, kind: str, every: int, offset: int
) -> None:
    lines = attempts(kind, tmp_path, "--every", str(every), "--offset", str(offset))
    assert len(lines) > 2
    for line in lines:
        assert not outcome(kind, line).startswith("LOST"), line


@pytest.mark.parametrize(("kind", "every", "offset"), [("error", 17, 2), ("death", 29, 4)])
def test_a_process_that_fails_ends_the_others_and_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, kind: str, every: int, offset: int
) -> None:
    lines = attempts(kind, tmp_path, "--every", str(every), "--offset", str(offset))
    assert {line["rank"] for line in lines} == {0, 1}
    for line in lines:
        assert not outcome(kind, line).startswith("LOST"), line
