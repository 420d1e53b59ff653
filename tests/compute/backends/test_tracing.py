"""`attend` goes through torch.compile in one graph and through torch.export, by every backend, with its gradients.

The shape checks of the tests cannot be traced, so this file runs itself once, without them, in a process of its own.
"""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from regard import (
    Additive,
    ALiBi,
    Argmax,
    Bilinear,
    Causal,
    CenteredWindow,
    Documents,
    FeatureDot,
    Gaussian,
    Lengths,
    LocalGaussian,
    Mask,
    Prefix,
    Relative,
    RowTotal,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    Window,
    attend,
)

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13


class AttendModule(nn.Module):
    """Parts in a module, as a model has them."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList([part for part in options.values() if isinstance(part, nn.Module)])
        self.options = options
        self.double()

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attend(query, key, value, **self.options).output


def build_cases() -> dict[str, tuple[str, AttendModule]]:
    """Return what to trace, and the backend that it must land on."""
    centers, lengths = torch.linspace(0.0, 6.0, L), torch.tensor([[4], [0]])
    return {
        "plain": ("sdpa", AttendModule()),
        "causal": ("sdpa", AttendModule(mask=Causal())),
        "lengths": ("sdpa", AttendModule(mask=Lengths(lengths))),
        "causal and lengths": ("sdpa", AttendModule(mask=Causal() & Lengths(lengths))),
        "prefix": ("sdpa", AttendModule(mask=Prefix(lengths))),
        "documents": ("sdpa", AttendModule(mask=Documents(torch.arange(S) // 3))),
        "table": ("sdpa", AttendModule(mask=Mask.keep(torch.rand(B, 1, L, S) < 0.5))),
        "learned gaussian": ("sdpa", AttendModule(score=Gaussian.learned(heads=H), mask=Lengths(lengths))),
        "sum, alibi, temperature": (
            "sdpa",
            AttendModule(
                score=0.5 * Bilinear(D, D) + Gaussian(0.5),
                bias=ALiBi(H),
                mask=Causal(),
                normalizer=Softmax.learned(heads=H),
            ),
        ),
        "softmax plus one": ("sdpa", AttendModule(normalizer=SoftmaxPlusOne(), mask=Causal())),
        "window": ("local", AttendModule(mask=Window(before=2, after=1), backend="local")),
        "around": ("local", AttendModule(mask=CenteredWindow(centers, 2), backend="local")),
        "linear": ("linear", AttendModule(score=FeatureDot(), normalizer=RowTotal(), mask=Causal() & Lengths(lengths))),
        "additive": ("stream", AttendModule(score=Additive(D, heads=H), mask=Causal())),
        "relative": ("stream", AttendModule(bias=Relative(H))),
        "local-p": (
            "stream",
            AttendModule(normalizer=LocalGaussian(centers.double(), 1.5), mask=CenteredWindow(centers, 3)),
        ),
        "sparsemax": ("rows", AttendModule(normalizer=Sparsemax(), mask=Lengths(lengths))),
        "argmax": ("rows", AttendModule(aggregate=Argmax())),
    }


ALL = list(build_cases())
FREE = ("causal", "additive", "sparsemax")
HIDING = ("causal", "lengths", "documents", "table", "window")


def tensors(queries: int = L, keys: int = S) -> list[Tensor]:
    return [torch.randn(B, H, *size, dtype=torch.float64) for size in ((queries, D), (keys, D), (keys, E))]


def measure_difference(traced: Any, module: AttendModule, queries: int = L, keys: int = S) -> float:
    """Return the largest difference of the value and of all gradients, parameters included."""
    inputs = [tensor.requires_grad_() for tensor in tensors(queries, keys)]
    wanted = [*inputs, *module.parameters()]
    results = []
    for run in (module, traced):
        output = run(*inputs)
        mixture = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view(output.shape)
        grads = torch.autograd.grad((output * mixture).sum(), wanted, allow_unused=True)
        results.append([output, *(torch.zeros(()) if grad is None else grad for grad in grads)])
    return max(float((one - other).detach().abs().max()) for one, other in zip(*results, strict=True))


def measure_compiled(module: AttendModule) -> float:
    torch.compiler.reset()
    return measure_difference(torch.compile(module, fullgraph=True, backend="aot_eager"), module)


def measure_leak(module: AttendModule) -> float:
    """Return the largest difference, in float32, that any content of a key makes to a query that may not see it."""
    torch.compiler.reset()
    traced = torch.compile(module, fullgraph=True, backend="aot_eager")
    query, key, value = (tensor.float() for tensor in tensors())
    query.requires_grad_()
    blind = ~module.options["mask"].table(L, S)[..., -1].expand(B, H, L)
    results = []
    for content in (0.0, 1e30, 3e38, -3e38, float("inf"), float("nan")):
        spoilt = [torch.cat([one[..., :-1, :], torch.full_like(one[..., -1:, :], content)], -2) for one in (key, value)]
        output = traced(query, *spoilt)[blind]
        results.append(torch.cat([output.flatten(), torch.autograd.grad(output.sum(), query)[0].flatten()]))
    return float((torch.stack(results) - results[0]).detach().abs().max())  # NaN if one is


def measure_exported(module: AttendModule) -> float:
    with torch.no_grad():
        program = torch.export.export(module, tuple(tensors()))
        inputs = tensors()
        return float((program.module()(*inputs) - module(*inputs)).abs().max())


def measure_other_lengths(module: AttendModule) -> float:
    """Return the difference of one graph at other lengths: a graph for each would soon be one too many."""
    torch.compiler.reset()
    counters.clear()
    free = torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")
    worst = max(measure_difference(free, module, *size) for size in ((5, 7), (6, 11), (11, 17)))
    graphs = counters["stats"]["unique_graphs"]
    if graphs != 1:
        raise RuntimeError(f"{graphs} graphs for three lengths")
    return worst


def main() -> None:
    torch.manual_seed(0)
    found: dict[str, float | str] = {}
    for name, (backend, module) in build_cases().items():
        planned = attend(*(t.requires_grad_() for t in tensors()), **module.options).plan.backend
        found[f"{name}: planned"] = planned
        for way in (
            measure_other_lengths if name in FREE else measure_compiled,
            measure_exported,
            *([measure_leak] if name in HIDING else []),
        ):
            try:
                found[f"{name}: {way.__name__}"] = way(module)
            except Exception as error:
                found[f"{name}: {way.__name__}"] = f"{type(error).__name__}: {error}"
        assert planned == backend or name == "local-p", (name, planned)
    print(json.dumps(found))


@pytest.fixture(scope="module")
def differences() -> dict[str, float | str]:
    run = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    result: dict[str, float | str] = json.loads(run.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_attend_traces_into_one_graph(name: str, differences: dict[str, float | str]) -> None:
    """Value and every gradient; for all lengths in the same graph where the name is in FREE."""
    way = measure_other_lengths if name in FREE else measure_compiled
    error = differences[f"{name}: {way.__name__}"]
    assert isinstance(error, float), error
    assert error <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_attend_can_be_exported(name: str, differences: dict[str, float | str]) -> None:
    error = differences[f"{name}: {measure_exported.__name__}"]
    assert isinstance(error, float), error
    assert error <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", HIDING)
def test_a_graph_hides_keys_of_any_size(name: str, differences: dict[str, float | str]) -> None:
    """A graph cannot look at its numbers and be planned again."""
    error = differences[f"{name}: {measure_leak.__name__}"]
    assert isinstance(error, float), error
    assert error <= 1e-6


if __name__ == "__main__":
    main()
