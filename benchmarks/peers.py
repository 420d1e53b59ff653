"""Install the libraries that we are compared with, in an environment of their own: `find_python -m benchmarks.peers`.

They are never dependencies of the package. regard itself is not installed there: it is imported from this tree.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-peers"
PINS = Path(__file__).with_name("peers.txt")
STAMP = FOLDER / ".installed"

WHOLE = ("torch", "numpy", "jaxtyping", "keras", "x-transformers", "transformers", "entmax")
# Their models need nothing but torch and numpy; their own pins exclude this torch or this protobuf. bertviz is imported
# beside our own IPython.
ALONE = ("OpenNMT-py", "joeynmt", "bertviz")
OURS = ("ctranslate2", "num2words", "Babel", "cyclopts")  # what regard itself translates with, and its commands


def find_python() -> Path:
    """Return the interpreter of that environment."""
    return FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_installed() -> bool:
    """Return whether the environment is there and is what the pins say."""
    return find_python().exists() and STAMP.exists() and STAMP.read_text() == _compute_stamp()


def install() -> None:
    """Make the environment; nothing is done where it is there."""
    if is_installed():
        return
    if not find_python().exists():
        _create()
    _pip("install", *WHOLE, *OURS)
    _pip("install", "--no-deps", *ALONE)
    STAMP.write_text(_compute_stamp())


def _compute_stamp() -> str:
    return hashlib.sha256(PINS.read_bytes() + repr((WHOLE, ALONE, OURS)).encode()).hexdigest()


def _create() -> None:
    try:
        venv.create(FOLDER, with_pip=True)
    except subprocess.CalledProcessError:
        # Some systems package venv without its own pip; the one at hand then installs it.
        venv.create(FOLDER, clear=True)
        command = [sys.executable, "-m", "pip", "--python", str(find_python()), "install", "--quiet", "pip"]
        subprocess.run(command, check=True)


def _pip(*arguments: str) -> None:
    pins = {"PIP_CONSTRAINT": str(PINS), "PIP_BUILD_CONSTRAINT": str(PINS), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [str(find_python()), "-m", "pip", arguments[0], "--quiet", *arguments[1:]]
    subprocess.run(command, check=True, env={**os.environ, **pins})


if __name__ == "__main__":
    install()
    print(f"peers are in {FOLDER.name}")
