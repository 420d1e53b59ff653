"""A change is noticed if a test fails or hangs; running out of time decides nothing."""

from pathlib import Path

import pytest

from tests.mutation import __main__ as mutation


@pytest.mark.parametrize(
    ("lines", "limit", "noticed", "by"),
    [
        ("def test_it(): pass", 60.0, False, "exit code 0"),
        ("def it(): pass", 60.0, False, "exit code 5"),
        ("def test_it(): assert False", 60.0, True, "FAILED test_it.py::test_it"),
        ("def test_it(): __import__('time').sleep(60)", 60.0, True, "a test hangs for 3 s"),
        ("def test_it(): __import__('time').sleep(60)", 0.5, None, "0 s were not enough"),
    ],
    ids=["passes", "none", "fails", "hangs", "slow"],
)
def test_a_hang_is_noticed_and_lack_of_time_is_not(
    lines: str, limit: float, noticed: bool | None, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation, "HANGS", 3)
    (tmp_path / "test_it.py").write_text(lines)
    assert mutation.run_tests(tmp_path, ["test_it.py"], limit) == (noticed, by)
