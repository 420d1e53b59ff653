"""A task trained from Python is the run that the command would have made."""

from pathlib import Path
from typing import Any

import pytest

from regard import InputError, train


def test_python_trains_what_the_command_does(regard: Any, tmp_path: Path) -> None:
    fields = {"stop.steps": 3, "data.size": 64, "data.held_out": 16}
    model = train("reading", "facts-zh", preset="bidaf", fields=fields | {"folder": tmp_path / "python"})
    flags = [word for name, value in fields.items() for word in (f"--{name}", str(value))]
    done = regard("train", "reading", "facts-zh", "--folder", str(tmp_path / "command"), *flags)
    assert done.code == 0, done.errors
    weights = [(tmp_path / run / "weights.safetensors").read_bytes() for run in ("python", "command")]
    assert weights[0] == weights[1]
    assert model.task == "reading"
    assert model.predict().text


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"stop\.step"):
        train("reading", fields={"stop.step": 3})
    with pytest.raises(InputError, match="task: got raeding"):
        train("raeding")
