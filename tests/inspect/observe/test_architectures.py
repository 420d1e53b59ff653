"""The table of architectures in the docs: of the form that its maker writes, and true where it is tried again."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import architectures as maker
from tests.inspect.observe.architectures import list_architectures, look_at, transformers

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' own, which differ from release to release
PAGE = Path(maker.__file__).with_name("architectures.md")
SAMPLE = ("albert", "bloom", "deberta-v2", "falcon", "gpt_neo", "led", "longformer", "mistral", "t5", "xlnet")
OTHER = "docs/architectures.md is of another release of transformers; fix: python -m docs.architectures"


def rows() -> dict[str, list[str]]:
    """Return the cells of each architecture by its name."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {row[0]: row for row in cells if len(row) == 6 or row[0] in KNOWN}


KNOWN = set(list_architectures())


def is_current() -> bool:
    return f"transformers {transformers.__version__} " in PAGE.read_text(encoding="utf-8")


def test_every_architecture_has_its_row_and_all_that_ran_gave_the_same_bits() -> None:
    if not is_current():
        pytest.skip(OTHER)
    found = rows()
    assert {*found} - {"architecture"} == KNOWN
    built = [row for name, row in found.items() if len(row) == 6 and name in KNOWN]
    assert len(built) > 300
    assert {row[3] for row in built} <= {"yes", "–"}
    for row in built:
        assert re.fullmatch(r"\d+", row[2])
        assert re.fullmatch(r"\d+ of \d+|–", row[4])
        assert row[5]


def test_the_counts_are_those_of_the_rows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    counts = {name: int(re.search(rf"\| (\d+) \| \*\*{name}\*\*", text)[1]) for name in maker.STATES}  # type: ignore[index]
    found = [row for name, row in rows().items() if name != "architecture"]
    assert sum(counts.values()) == len(found)
    assert counts["not built"] == sum(len(row) == 2 for row in found)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_row_is_what_is_seen_today(name: str) -> None:
    row = look_at(name).json
    assert row["identical"]
    if not is_current():
        pytest.skip(OTHER)
    assert maker._build_cells(row) == [cell.replace("\\\\", "\\") for cell in rows()[name]]


ODD = """
import os, sys, time
for line in sys.stdin:
    if line == "ends\\n":
        os._exit(3)
    if line == "hangs\\n":
        time.sleep(600)
    while line == "computes\\n":
        pass
    print('{"name": "%s", "kind": "Model", "sites": 2, "calls": 2, "identical": true, "equal": 0, "given": 0, '
          '"notes": [], "why": ""}' % line.strip(), flush=True)
"""


def test_one_that_hangs_or_ends_its_process_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", ODD], text=True, **pipes)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(maker, "start_worker", start)
    monkeypatch.setattr(maker, "LIMIT", 3.0)
    made = maker.examine_all(["one", "ends", "two", "computes"])
    monkeypatch.setattr(maker, "PATIENCE", 3.0)  # on the clock, for one that computes nothing
    made += maker.examine_all(["hangs", "three"])
    assert [maker.classify(row) for row in made] == ["seen", "not built", "seen", "not built", "not built", "seen"]
    page = maker.build_page(made)
    assert "| 3 | **seen**" in page
    assert "| ends | not run: it ended the process |" in page
    assert "| computes | not run: more than 3 s |" in page
    assert "| hangs | not run: more than 3 s |" in page
