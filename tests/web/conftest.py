"""Runs and a recording that are served, and a client that asks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from jaxtyping import config
from starlette.testclient import TestClient

from regard.inspect.recording import Recording
from regard.web.app import build_app

sys.path.insert(0, str(Path(__file__).parent))

from tiny_runs import LIMITS, MODELS, WORDS, make_run


@pytest.fixture(scope="module", autouse=True)
def _as_installed() -> Iterator[None]:
    """Shapes are checked by the tests of what is served; here they would only take time."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, a recording, and a file beside them that nobody may read."""
    folder = tmp_path_factory.mktemp("served")
    for name in MODELS:
        make_run(folder / name, name)
    torch.manual_seed(5)
    large = torch.rand(2, 300, 130).softmax(-1)
    recording = Recording.from_weights({"small": torch.eye(3), "large": large})
    recording.label([WORDS[4], "b", "c"], ["x", "y", "z"], sites="small")
    recording.save(folder / "attention.safetensors")
    (folder / "secret.txt").write_text("nobody may read this")
    return folder


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[TestClient]:
    paths = [*(place / name for name in MODELS), place / "attention.safetensors"]
    with TestClient(build_app(paths, limits=LIMITS), base_url="http://localhost") as client:
        yield client
