"""What the tests of the whole package share."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from jaxtyping import config

from regard.cli import main


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Shapes are not checked, as where users run it: bad input reaches our own sentences, and nothing is slowed."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    output: str
    errors: str


@pytest.fixture
def regard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], as_installed: None
) -> Callable[..., Done]:
    """The command, in this process and in an empty folder."""
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as error:
            code = int(error.code or 0)
        torch.set_num_threads(threads)
        return Done(code, *capfd.readouterr())

    return run
