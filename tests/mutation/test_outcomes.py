"""A change is noticed if a test fails or hangs; running out of time decides nothing."""

from pathlib import Path

import pytest

from tests.mutation import __main__ as mutation


@pytest.mark.parametrize(
    ("body", "limit", "noticed", "by"),
    [
        ("assert True", 60.0, False, "exit code 0"),
        ("assert False", 60.0, True, "FAILED test_it.py::test_it"),
        ("import time; time.sleep(60)", 60.0, True, "a test hangs for 3 s"),
        ("import time; time.sleep(60)", 0.5, None, "0 s were not enough"),
    ],
    ids=["passes", "fails", "hangs", "slow"],
)
def test_a_hang_is_noticed_and_lack_of_time_is_not(
    body: str, limit: float, noticed: bool | None, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation, "HANGS", 3)
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    assert mutation.run_tests(tmp_path, ["test_it.py"], limit) == (noticed, by)
