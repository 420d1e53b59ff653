"""Linear attention against the table of weights that it never builds."""

import pytest
import torch
from torch import Tensor

from regard.compute.kernels import linear

B, H, D, E = 2, 3, 11, 13
LENGTHS = [(1, 1), (5, 5), (64, 64), (67, 67), (131, 131), (5, 7), (1, 131), (67, 197), (197, 67), (128, 64)]
NAN = float("nan")


def parts(queries: int, keys: int, *, signed: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.randn if signed else torch.rand
    shapes = [(B, H, queries, D), (B, H, keys, D), (B, H, keys, E)]
    query, key, _ = (draw(shape, dtype=torch.float64).requires_grad_() for shape in shapes)
    return query, key, torch.randn(shapes[2], dtype=torch.float64, requires_grad=True)


def lower(queries: int, keys: int) -> Tensor:
    """Return the causal mask: the last query sits on the last key."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def dense(query: Tensor, key: Tensor, value: Tensor, table: Tensor) -> Tensor:
    """Return the definition, pair by pair."""
    scores = torch.where(table, query @ key.mT, 0.0)
    total = scores.sum(-1, keepdim=True)
    empty = total == 0
    return torch.where(empty, 0.0, scores / torch.where(empty, 1.0, total)) @ value


def compare(found: Tensor, wanted: Tensor, inputs: tuple[Tensor, ...]) -> None:
    grad = torch.randn_like(wanted)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    for one, other in zip(
        torch.autograd.grad(found, inputs, grad), torch.autograd.grad(wanted, inputs, grad), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_causal_is_the_definition(queries: int, keys: int) -> None:
    inputs = parts(queries, keys)
    compare(linear.attend_causal(*inputs).output, dense(*inputs, lower(queries, keys)), inputs)


@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_causal_with_a_key_mask_is_the_definition(queries: int, keys: int) -> None:
    inputs, allowed = parts(queries, keys), torch.rand(B, 1, keys) > 0.4
    allowed[0, :, : keys // 2] = False  # so that the first rows are empty
    table = lower(queries, keys) & allowed[..., None, :]
    compare(linear.attend_causal(*inputs, allowed).output, dense(*inputs, table), inputs)


@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_full_is_the_definition(queries: int, keys: int) -> None:
    inputs, allowed = parts(queries, keys), torch.rand(B, 1, keys) > 0.4
    compare(linear.attend_full(*inputs).output, dense(*inputs, torch.tensor(True)), inputs)
    compare(linear.attend_full(*inputs, allowed).output, dense(*inputs, allowed[..., None, :]), inputs)


def test_features_may_have_any_sign() -> None:
    query, key, value = parts(67, 67, signed=True)
    # Totals near 0 magnify rounding in both: keep them away from it by one constant feature.
    query, key = (torch.nn.functional.pad(side, (0, 1), value=8.0) for side in (query, key))
    inputs = tuple(tensor.detach().requires_grad_() for tensor in (query, key, value))
    compare(linear.attend_causal(*inputs).output, dense(*inputs, lower(67, 67)), inputs)


def test_grouped_heads_broadcast() -> None:
    query, key, value = parts(67, 67)
    inputs = (query, key[:, :1].detach().requires_grad_(), value[:, :1].detach().requires_grad_())
    compare(linear.attend_causal(*inputs).output, dense(*inputs, lower(67, 67)), inputs)
    compare(linear.attend_full(*inputs).output, dense(*inputs, torch.tensor(True)), inputs)


def test_the_gradient_is_that_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "CHUNK", 3)
    inputs = tuple(torch.rand(2, 5, size, dtype=torch.float64).requires_grad_() for size in (2, 2, 3))
    allowed = torch.tensor([[True] * 5, [False, False, True, False, True]])

    def run(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return linear.attend_causal(query, key, value, allowed)

    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_the_size_of_a_chunk_does_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = parts(67, 67)
    wanted = linear.attend_causal(*inputs).output
    monkeypatch.setattr(linear, "CHUNK", chunk)
    compare(linear.attend_causal(*inputs).output, wanted, inputs)


@pytest.mark.parametrize("form", ["full", "causal"])
def test_an_empty_row_reads_nothing_and_gets_no_gradient(form: str) -> None:
    inputs, allowed = parts(67, 67), torch.zeros(B, 1, 67, dtype=torch.bool)
    allowed[1] = True
    output, totals = getattr(linear, f"attend_{form}")(*inputs, allowed)
    assert (output[0] == 0).all()
    assert (totals[0] == 0).all()
    for grad in torch.autograd.grad(output, inputs, torch.randn_like(output)):
        assert (grad[0] == 0).all()
        assert torch.isfinite(grad).all()
        assert (grad[1] != 0).any()


@pytest.mark.parametrize("form", ["full", "causal"])
@pytest.mark.parametrize("planted", [NAN, float("inf")])
def test_what_is_masked_is_never_read(form: str, planted: float) -> None:
    query, key, value = parts(67, 67)
    allowed = torch.rand(B, 1, 67) > 0.4
    dirty = [torch.where(allowed[..., None], side.detach(), planted).requires_grad_() for side in (key, value)]
    attend = getattr(linear, f"attend_{form}")
    wanted, found = attend(query, key, value, allowed), attend(query, *dirty, allowed)
    assert torch.equal(found.output, wanted.output)
    grad = torch.randn_like(wanted.output)
    clean = torch.autograd.grad(wanted.output, (query, key, value), grad)
    for one, other in zip(torch.autograd.grad(found.output, (query, *dirty), grad), clean, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_read_or_nobody_to_read_it(queries: int, keys: int) -> None:
    inputs = parts(queries, keys)
    for form in (linear.attend_full, linear.attend_causal):
        output, totals = form(*inputs)
        assert output.shape == (B, H, queries, E)
        assert totals.shape == (B, H, queries)
        assert (output == 0).all()
        output.sum().backward()


@pytest.mark.parametrize("form", ["full", "causal"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(form: str, dtype: torch.dtype) -> None:
    inputs = [tensor.detach().to(dtype) for tensor in parts(67, 67)]
    output, totals = getattr(linear, f"attend_{form}")(*inputs)
    exact = getattr(linear, f"attend_{form}")(*(tensor.double() for tensor in inputs)).output
    assert output.dtype == dtype
    assert totals.dtype == torch.float32
    unit = torch.finfo(dtype)
    # Half a unit in the last place; float32 sums of 67 products before it, relative to the largest value.
    allowance = exact.abs() * unit.eps / 2 * 1.001 + unit.tiny + 67 * torch.finfo(torch.float32).eps * inputs[2].max()
    assert ((output.double() - exact).abs() <= allowance).all()


def test_memory_is_linear_in_the_length() -> None:
    """What is kept for the backward is as long as the inputs, and nothing has two axes of length."""
    sizes = {}
    for length in (256, 512, 1024):
        kept: dict[int, int] = {}

        def keep(tensor: Tensor, kept: dict[int, int] = kept) -> Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        inputs = [torch.rand(1, length, 16, requires_grad=True) for _ in range(3)]
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = linear.attend_causal(*inputs).output
        output.sum().backward()
        sizes[length] = sum(kept.values())
    assert sizes[1024] <= 2.01 * sizes[512] <= 4.04 * sizes[256]
    assert sizes[1024] < 1024 * 16 * 4 * 12  # twelve times one input, of which four are the inputs and the output
