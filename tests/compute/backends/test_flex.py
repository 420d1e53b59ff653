"""FlexAttention: its forward on the CPU equals the definition.

torch traces what it is given, and the shape checks of the tests cannot be traced, so this file runs itself once,
without them, in a process of its own.
"""

import json
import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch

from regard import Causal, Cosine, Gaussian, PlanError, ScaledDot, Softmax, Window, attend

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"mask": Causal()},
    "window": {"mask": Window(before=2, after=1)},
    "gaussian": {"score": Gaussian(torch.tensor([4.0, 2.0, 1.5], dtype=torch.float64)), "mask": Causal()},
    "sum": {"score": 0.5 * ScaledDot() + Cosine(0.3), "mask": Window(before=1, after=1)},
    "temperature": {"normalizer": Softmax(torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64))},
    "a query for all heads": {"shared": ("query", (B, 1))},
    "keys for all heads": {"shared": ("key", (B, 1))},
    "values for all heads": {"shared": ("value", (B, 1))},
    "keys for all sequences": {"shared": ("key", (1, H))},
    "rows that see nothing": {"mask": Causal(), "sizes": (S, L)},
}


def measure_difference(options: dict[str, Any]) -> float:
    """Return how far output and weights are from the definition's, where some rows see nothing."""
    options = dict(options)
    queries, keys = options.pop("sizes", (L, S))
    shapes = {"query": (queries, D), "key": (keys, D), "value": (keys, E)}
    name, lead = options.pop("shared", ("query", (B, H)))
    tensors = {
        own: torch.randn(*(lead if own == name else (B, H)), *size, dtype=torch.float64) for own, size in shapes.items()
    }
    with torch.no_grad():
        found, true = (attend(**tensors, backend=backend, **options) for backend in ("flex", "eager"))
    assert found.plan.backend == "flex"
    assert (found.output[true.output == 0] == 0).all()
    parts = (found.output - true.output, found.weights.dense() - true.weights.dense())
    return max(float(part.abs().max()) for part in parts)


def main() -> None:
    warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
    torch.manual_seed(0)
    found: dict[str, float | str] = {}
    for name, options in CASES.items():
        try:
            found[name] = measure_difference(options)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))


@pytest.fixture(scope="module")
def differences() -> dict[str, float | str]:
    run = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    result: dict[str, float | str] = json.loads(run.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("name", CASES)
def test_its_forward_is_the_definition(name: str, differences: dict[str, float | str]) -> None:
    error = differences[name]
    assert isinstance(error, float), error
    assert error <= 1e-10


def test_it_refuses_a_gradient_on_the_cpu() -> None:
    query = torch.randn(B, H, L, D)
    with pytest.raises(PlanError, match="FlexAttention has no backward on the CPU"):
        attend(query, query, query, backend="flex")


if __name__ == "__main__":
    main()
