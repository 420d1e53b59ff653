"""Faults at chosen operations, not at random times: nothing is lost and nobody waits for ever.

A few dozen here; all of them by `make kills`, which writes docs/faults.md.
"""

import json
import re
from pathlib import Path

import pytest
from fault_table import TARGET, attempt_all, describe_outcome


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
    lines = attempt_all(kind, tmp_path, "--every", str(every), "--offset", str(offset))
    assert len(lines) > 2
    for line in lines:
        assert not describe_outcome(kind, line).startswith("LOST"), line


@pytest.mark.parametrize(("kind", "every", "offset"), [("error", 17, 2), ("death", 29, 4)])
def test_a_process_that_fails_ends_the_others_and_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, kind: str, every: int, offset: int
) -> None:
    lines = attempt_all(kind, tmp_path, "--every", str(every), "--offset", str(offset))
    assert {line["rank"] for line in lines} == {0, 1}
    for line in lines:
        assert not describe_outcome(kind, line).startswith("LOST"), line


def test_the_table_in_the_docs_has_every_place(tmp_path: Path) -> None:
    """A new place where a run touches its files is tried by `make kills` before it is released."""
    attempt_all("kill", tmp_path, "--every", "100000")
    places = {tuple(one) for one in json.loads((tmp_path / "whole" / "trace.json").read_text())}
    text = TARGET.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| ([a-z ]+) \| `(.*?)` \|", text.split("\n## ")[1], re.MULTILINE))
    assert places == listed, "fix: make kills"
    assert "LOST" not in text
    kills = re.search(r"^([\d,]+) faults, ([\d,]+) of them kills; something was lost 0 times\.$", text, re.MULTILINE)
    assert kills is not None
    assert int(kills[2].replace(",", "")) >= 300
