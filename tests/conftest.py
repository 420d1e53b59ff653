"""Fixtures that all tests share."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from jaxtyping import config

from regard.cli.commands import run_command


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Turn the checks of shapes off, as for users: bad input reaches our own messages, and nothing is slowed."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    output: str
    errors: str


@pytest.fixture
def regard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], as_installed: None
) -> Callable[..., CommandResult]:
    """Return a function that runs the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()

    def run(*arguments: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        code = 0
        try:
            run_command()
        except SystemExit as error:
            code = int(error.code or 0)
        torch.set_num_threads(threads)
        return CommandResult(code, *capfd.readouterr())

    return run
