"""How far a reader has to go to follow one call of `attend` from beginning to end.

The path is the order in which the functions of `regard` are entered for the first time, and a step is a change of file
from one function to the next.
"""

import inspect
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

import torch

import regard
from regard import Additive, Causal, attend
from regard.compute.kernels import native

ROOT = str(Path(regard.__file__).parent)
MOST_STEPS = 40


def trace_files(score: Additive, query: torch.Tensor) -> list[str]:
    """Return the file of each function that the call enters, in the order of the first visits."""
    visited: dict[tuple[str, str], None] = {}

    def visit(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            visited[code.co_filename, code.co_name] = None

    call, mask = inspect.unwrap(attend), Causal()  # what words refusals is not on the way
    before = sys.getprofile()
    sys.setprofile(visit)
    try:
        call(query, query, query, score=score, mask=mask)
    finally:
        sys.setprofile(before)
    return [file for file, _ in visited]


def test_one_call_passes_few_files() -> None:
    """A call that was planned and compiled before: what is done at every call, not what is done once."""
    score, query = Additive(query=11, key=11, hidden=13), torch.randn(2, 3, 5, 11)
    native.load_library()
    for _ in range(2):
        attend(query, query, query, score=score, mask=Causal())
    files = trace_files(score, query)
    steps = sum(one != other for one, other in pairwise(files))
    assert len(set(files)) > 15, files  # the whole way was seen
    assert steps <= MOST_STEPS, [file.removeprefix(ROOT) for file in files]
