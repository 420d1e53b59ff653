"""Tensors without numbers behind them never reach a kernel that takes pointers: shapes come out, or a sentence of ours."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import regard
from regard import catalog
from regard.errors import RegardError
from regard.numerics import alignment, dropout, few, native, noise, ragged, ranking, recurrent, summary, vocabulary
from regard.numerics.additive import additive_scores
from regard.numerics.flash import flash
from regard.numerics.monotonic import expected
from regard.numerics.native import gate
from regard.numerics.simplex import entmax, sparsemax

CASES = """
import json, sys, torch
from torch._subclasses.fake_tensor import FakeTensorMode
from regard import attend, catalog, verify
from regard.errors import RegardError
from regard.numerics import native

native.library()
torch.set_num_threads(1)
kind, told = sys.argv[1], {}
sizes = catalog.Sizes(query=4, key=4, value=4, lead=(2, 3), queries=5, keys=5)
shapes = (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4)

def run(case, grad):
    parts = verify.build(case, sizes, dtype=torch.float32)
    def go():
        tensors = [torch.randn(shape, requires_grad=grad) for shape in shapes]
        with torch.set_grad_enabled(grad):
            output = verify.run(parts, tensors, "auto").output
        if grad and output.requires_grad:
            output.sum().backward()
        return list(output.shape)
    if kind == "fake":
        with FakeTensorMode(allow_non_fake_inputs=True):
            return go()
    for part in parts:
        if isinstance(part, torch.nn.Module):
            part.to("meta")
    with torch.device("meta"):
        return go()

for case in verify.pairwise():
    for grad in (False, True):
        print(case, grad, file=sys.stderr)  # the last one, should the process end
        try:
            told[f"{case} {grad}"] = run(case, grad)
        except Exception as error:
            told[f"{case} {grad}"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


@pytest.mark.parametrize("kind", ["fake", "meta"])
def test_no_combination_ends_the_process(kind: str) -> None:
    run = subprocess.run([sys.executable, "-c", CASES, kind], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-300:]
    told = json.loads(run.stdout)
    shapes = [case for case, answer in told.items() if answer == [2, 3, 5, 4]]
    assert len(shapes) >= 0.5 * len(told), {case: answer for case, answer in told.items() if case not in shapes}
