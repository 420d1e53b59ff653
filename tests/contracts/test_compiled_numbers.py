"""A compiled graph gives what a plain call gives. In a process of its own: checks of shapes cannot be traced."""

import subprocess
import sys

START = """
import copy, torch
from regard import *

def compile(**parts):
    torch._dynamo.reset()
    return torch.compile(lambda *tensors: attend(*tensors, **parts).output, backend="aot_eager", fullgraph=True)
"""
HALVES = """
def differentiate(parts, tensors):
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    output = compile(mask=Causal(), **parts)(*tensors)
    wanted = [*tensors, *(p for part in parts.values() for p in part.parameters())]
    mixture = torch.linspace(-1, 1, output.numel()).view(output.shape).bfloat16().to(output.dtype)
    return [output, *torch.autograd.grad(output, wanted, mixture)]

for half, score, normalizer in (
    (torch.bfloat16, Additive(4), Entmax.learned(1.3, heads=3)),
    (torch.float16, Cosine.learned(0.1), Sparsemax()),
):
    parts = {"score": copy.deepcopy(score).to(half), "normalizer": copy.deepcopy(normalizer).to(half)}
    tensors = [torch.randn(2, 3, length, 4).to(half) for length in (5, 7, 7)]
    found = differentiate(parts, tensors)
    wide = {name: copy.deepcopy(part).float() for name, part in parts.items()}
    true = differentiate(wide, [tensor.float() for tensor in tensors])
    print(sum(not torch.equal(one, other.to(half)) for one, other in zip(found, true, strict=True)))
"""


def run(script: str) -> list[float]:
    """Return the numbers that a script prints."""
    found = subprocess.run([sys.executable, "-c", START + script], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    return [float(line) for line in found.stdout.split()]


def test_gradients_of_half_precision_are_rounded_once_in_a_graph() -> None:
    wrong = run(HALVES)
    assert wrong == [0.0] * 2, wrong
