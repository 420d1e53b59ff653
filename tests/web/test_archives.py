"""Archives and pickles where a safetensors file is expected: refused for what they are, and never unpacked."""

import gzip
import io
import pickle
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tiny_runs import make_run

from regard.web.app import build_app
from regard.web.limits import Limits

UNPACKED, MOST = 2**26, 2**25  # bytes
QUESTION = {"run": "run", "text": "one", "target": "one"}
SENTENCE = re.compile(r"[\w ]+: got [^\n]+, expected [^\n]+; fix: [^\n]+")


class FillingPickle:
    """Takes memory when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return bytearray, (UNPACKED,)


class TouchingPickle:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.trace,)


def make_pickle(trace: Path) -> bytes:
    return pickle.dumps([TouchingPickle(trace), FillingPickle()])


def zip_content(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def unzip(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(archive.namelist()[0])


MADE: dict[str, Callable[[Path], bytes]] = {
    "zip": lambda trace: zip_content("weights.safetensors", bytes(UNPACKED)),
    "gzip": lambda trace: gzip.compress(bytes(UNPACKED), mtime=0),
    "pickle": make_pickle,
    "zip-of-pickle": lambda trace: zip_content("archive/data.pkl", make_pickle(trace)),
}
UNPACK: dict[str, Callable[[bytes], object]] = {
    "zip": unzip,
    "gzip": gzip.decompress,
    "pickle": pickle.loads,
    "zip-of-pickle": lambda content: pickle.loads(unzip(content)),
}


def measure_peak(work: Callable[[], Any]) -> tuple[Any, int]:
    """Return what some work gives, and the most memory it took on its way, in all threads."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def upload(content: bytes, folder: Path) -> Any:
    headers = {"Content-Type": "application/octet-stream"}
    return post([make_run(folder / "run", "plain")], "/api/recordings", content=content, headers=headers)


def open_recording(content: bytes, folder: Path) -> Any:
    (folder / "attention.safetensors").write_bytes(content)
    return post([folder / "attention.safetensors"], "/api/files/attention.safetensors")


def load_weights(content: bytes, folder: Path) -> Any:
    run = make_run(folder / "run", "plain")
    (run / "weights.safetensors").write_bytes(content)
    return post([run], "/api/attention", json=QUESTION)


def post(paths: list[Path], path: str, **request: Any) -> Any:
    with TestClient(build_app(paths, limits=Limits(upload=2**20)), base_url="http://localhost") as client:
        return client.post(path, **request)


@pytest.fixture(scope="module", autouse=True)
def _import_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One whole run is opened before: what torch imports on the way takes memory too, once."""
    post([make_run(tmp_path_factory.mktemp("whole") / "run", "plain")], "/api/attention", json=QUESTION)


@pytest.mark.parametrize("name", MADE)
def test_unpacking_would_be_noticed(tmp_path: Path, name: str) -> None:
    content = MADE[name](tmp_path / "trace")
    assert len(content) < 2**17
    _, most = measure_peak(lambda: UNPACK[name](content))
    assert most >= UNPACKED
    assert (tmp_path / "trace").exists() == ("pickle" in name)


@pytest.mark.parametrize("way", [upload, open_recording, load_weights], ids=["uploaded", "opened", "loaded"])
@pytest.mark.parametrize("name", MADE)
def test_archives_and_pickles_are_refused_and_not_unpacked(
    tmp_path: Path, name: str, way: Callable[[bytes, Path], Any]
) -> None:
    content = MADE[name](tmp_path / "trace")
    answer, most = measure_peak(lambda: way(content, tmp_path))
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert SENTENCE.fullmatch(answer.json()["error"])
    assert most < MOST
    assert not (tmp_path / "trace").exists()
