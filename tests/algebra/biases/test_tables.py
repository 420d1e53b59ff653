"""Biases that are given."""

import re

import pytest
import torch

from regard import Bias, Dense, Dot, InputError, KindError, Lengths, Prior, attend
from regard.algebra.pairs import Pairs

BACKENDS = ["eager", "sdpa", "local", "stream"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_prior_multiplies_the_exponentials(backend: str) -> None:
    """Scores of zero: the weights are the prior itself, where its numbers are logarithms of shares."""
    shares = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64)
    query, key = torch.zeros(3, 5, dtype=torch.float64), torch.zeros(4, 5, dtype=torch.float64)
    attended = attend(query, key, torch.eye(4).double(), bias=Prior(shares.log()), backend=backend)  # type: ignore[arg-type]
    assert torch.allclose(attended.output, shares.expand(3, 4), rtol=0, atol=1e-14)


def test_a_prior_is_a_column_whatever_the_mask_and_normalizer() -> None:
    prior = Prior(torch.randn(2, 1, 7))
    for causal in (False, True):
        for shift_invariant in (False, True):
            assert prior.form(causal=causal, shift_invariant=shift_invariant, keys=7) == "column"
    pairs = Pairs(5, 7, rows=(1, 3), columns=(2, 6))
    assert torch.equal(prior(pairs), prior.column(pairs)[..., None, :])
    assert torch.equal(prior(pairs), prior.prior[..., None, 2:6])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_learned_prior_gets_its_gradient(backend: str) -> None:
    """At equal scores d output / d prior_j = w_j (v_j − output): the derivative of the softmax."""
    prior = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    value = torch.tensor([[1.0], [2.0], [3.0], [6.0]], dtype=torch.float64)
    query, key = torch.zeros(1, 2, dtype=torch.float64), torch.zeros(4, 2, dtype=torch.float64)
    output = attend(query, key, value, bias=Prior(prior), backend=backend).output  # type: ignore[arg-type]
    (grad,) = torch.autograd.grad(output.sum(), prior)
    assert torch.allclose(grad, (value[:, 0] - 3.0) / 4, rtol=0, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_minus_infinity_forbids_the_pair(backend: str) -> None:
    """As a mask does: the same output, and nothing where a whole row is forbidden."""
    query, key, value = (torch.randn(2, n, 11, dtype=torch.float64) for n in (5, 7, 7))
    hidden = torch.rand(5, 7) < 0.4
    hidden[2] = True
    table = torch.randn(5, 7, dtype=torch.float64)
    found = attend(query, key, value, bias=Dense(table.masked_fill(hidden, -torch.inf)), backend=backend)  # type: ignore[arg-type]
    scores = (query @ key.mT / 11**0.5 + table).masked_fill(hidden, -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    assert torch.allclose(found.output, weights @ value, rtol=0, atol=1e-12)
    assert (found.output[:, 2] == 0).all()
    assert (found.weights.dense()[:, 2] == 0).all()
    assert (found.weights.entropy()[:, 2] == 0).all()


def test_a_learned_table_gets_its_gradient_though_fused_kernels_give_none() -> None:
    table = torch.zeros(5, 7, dtype=torch.float64, requires_grad=True)
    query, key, value = (torch.randn(n, 11, dtype=torch.float64) for n in (5, 7, 7))
    attended = attend(query, key, value, bias=Dense(table), mask=Lengths(torch.tensor(6)))
    assert attended.plan.backend == "stream"
    (grad,) = torch.autograd.grad(attended.output.square().sum(), table)
    (true,) = torch.autograd.grad(
        attend(query, key, value, bias=Dense(table), mask=Lengths(torch.tensor(6)), backend="eager")
        .output.square()
        .sum(),
        table,
    )
    assert torch.allclose(grad, true, rtol=0, atol=1e-14)
    assert (grad[:, 6] == 0).all()
    assert (grad[:, :6] != 0).all()


MISFITS = {
    "numbers": (Prior(torch.zeros(6)), "bias.prior: got 6 numbers, expected keys=7; fix: give one number for each key"),
    "prior of others": (
        Prior(torch.zeros(7, 7)),
        "bias.prior: got lead axes (7,), expected axes that broadcast to (2, 3); "
        "fix: give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)",
    ),
    "table": (
        Dense(torch.zeros(7, 5)),
        "bias.table: got (7, 5), expected (queries, keys) = (5, 7); "
        "fix: give it one row for each query and one column for each key",
    ),
    "table of others": (
        Dense(torch.zeros(2, 5, 7)),
        "bias.table: got lead axes (2,), expected axes that broadcast to (2, 3); "
        "fix: give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_bias_that_does_not_fit_is_one_sentence(name: str) -> None:
    bias, sentence = MISFITS[name]
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(2, 3, 5, 11), torch.ones(2, 3, 7, 11), torch.ones(2, 3, 7, 2), score=Dot(), bias=bias)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(("build", "name"), [(Prior, "prior"), (Dense, "table")])
def test_numbers_in_a_list_are_one_sentence(build: type[Bias], name: str) -> None:
    with pytest.raises(KindError, match=rf"^{name}: got a list, expected a tensor; fix: write torch.tensor\(...\)$"):
        build([1.0, 2.0])  # type: ignore[call-arg]
