"""Every function traces into one graph, forward and backward, and then gives the same numbers.

The shape checks of the tests cannot be traced, so this file runs itself once, without them, in a process of its own.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from regard.compute.kernels import linear, monotonic, noise, simplex, simplex_rows

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13


def table(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64)


def build_cases() -> dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]]:
    """Return functions of tensors, with tensors for them."""
    scores, alpha = table(B, H, L, S), 1 + table(H, 1, 1)
    allowed, columns = torch.rand(L, S) > 0.3, torch.rand(B, 1, S) > 0.3
    query, key, value = table(B, H, L, D), table(B, H, S, D), table(B, H, S, E)
    seed, rows = noise.draw_seed(), torch.arange(L)
    return {
        "softmax": (lambda s: simplex.softmax(s, allowed), (scores,)),
        "softmax_plus_one": (lambda s: simplex.softmax_plus_one(s, allowed), (scores,)),
        "sparsemax": (lambda s: simplex.sparsemax(s, allowed), (scores,)),
        "sparsemax without a mask": (simplex.sparsemax, (scores,)),
        "entmax15": (lambda s: simplex.entmax15(s, allowed), (scores,)),
        "entmax": (lambda s: simplex.entmax(s, allowed, 1.3), (scores,)),
        "learned entmax": (lambda s, a: simplex.entmax(s, allowed, a), (scores, alpha)),
        "sigmoid": (lambda s: simplex.sigmoid(s, allowed), (scores,)),
        "row_total": (lambda s: simplex.row_total(s, allowed), (scores,)),
        "expected": (lambda s: monotonic.align_expected(s, allowed[:2]), (table(B, H, 2, S),)),
        "chunkwise": (lambda w, s: monotonic.attend_chunkwise(w, s, 3, allowed), (scores, table(B, H, L, S))),
        "full": (lambda q, k, v: linear.attend_full(q, k, v, columns).output, (query, key, value)),
        "causal": (lambda q, k, v: linear.attend_causal(q, k, v, columns).output, (query, key, value)),
        "dropout": (lambda s: s * noise.draw_dropout_factors(seed, (B, H), rows, torch.arange(S), 0.3), (scores,)),
        "gumbel": (lambda s: s * noise.draw_gumbel(seed, (B, H), rows, torch.arange(S)), (scores,)),
    }


def measure_difference(run: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> float:
    """Return the largest difference of value and gradients between plain and traced."""
    inputs = tuple(tensor.requires_grad_() for tensor in inputs)
    torch.compiler.reset()
    plain, traced = run(*inputs), torch.compile(run, fullgraph=True, backend="aot_eager")(*inputs)
    grad = torch.rand_like(plain)
    pairs = zip(torch.autograd.grad(plain, inputs, grad), torch.autograd.grad(traced, inputs, grad), strict=True)
    return max(float((one - other).detach().abs().max()) for one, other in [(plain, traced), *pairs])


def main() -> None:
    torch.manual_seed(0)
    found = {name: attempt(*case) for name, case in build_cases().items()}
    # As on a device for which we have no loops: the compiler sees the steps of Newton's method.
    with (
        patch.object(simplex_rows, "find_library", lambda *_: None),
        patch.object(simplex_rows, "_runs_as_operator", lambda _: False),
    ):
        found |= {f"{name}, by torch": attempt(*build_cases()[name]) for name in ("sparsemax", "learned entmax")}
    print(json.dumps(found))


def attempt(run: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> float | str:
    try:
        return measure_difference(run, inputs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.slow
def test_every_function_is_one_graph_and_gives_the_same_numbers() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == len(build_cases()) + 2
    wrong = {name: result for name, result in found.items() if not isinstance(result, float) or result > 1e-12}
    assert not wrong


if __name__ == "__main__":
    main()
