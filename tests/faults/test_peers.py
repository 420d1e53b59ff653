"""Faults that other libraries have or had: each shown where the library is at hand, and absent here."""

import math

import pytest
import torch
from torch import nn

from regard import (
    Additive,
    Argmax,
    Causal,
    CenteredWindow,
    Dense,
    Dot,
    Entmax15,
    Gaussian,
    Lengths,
    LocalGaussian,
    Mask,
    Monotonic,
    Normalizer,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    attend,
)
from regard.algebra import catalog
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Tensor
from regard.compute.planning import BackendName
from regard.layers import Attention, Coverage, Mechanism, Memory, build_initial_weights, coverage_loss

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def tensors(dtype: torch.dtype = torch.float64, length: int = L) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(B, H, n, w, dtype=dtype) for n, w in ((length, D), (S, D), (S, E)))
    return query, key, value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_multihead_attention_with_all_keys_padded_is_nan_in_torch(training: bool, weights: bool) -> None:
    """nn.MultiheadAttention: NaN or not by how it is called. Here, in all four ways, what the last bias makes of 0."""
    theirs = nn.MultiheadAttention(6, 3, batch_first=True).train(training)
    mine = Attention.from_torch(theirs)
    x = torch.randn(2, 5, 6)
    padding = torch.tensor([[False] * 5, [True] * 5])
    with torch.no_grad():
        given, _ = theirs(x, x, x, key_padding_mask=padding, need_weights=weights)
    memory = mine.remember(x, mask=Mask.drop(padding[:, None, :]))
    found = mine.attend(x, memory)
    if weights:
        assert (found.weights.dense()[1] == 0).all()
    assert torch.allclose(found.output[0], given[0], atol=1e-6)
    assert torch.allclose(found.output[1], theirs.out_proj.bias.expand(5, 6), atol=1e-6)
    if weights:
        assert torch.isnan(given[1]).all()  # if this fails, torch has mended it: say so in the docs


def test_causal_and_left_padding_leave_a_row_empty_as_in_x_transformers() -> None:
    """Its eager path gives the mean of all values there, future ones included."""
    query, key, value = tensors(length=S)
    padded = torch.arange(S) >= torch.tensor([[3], [0]])[..., None]  # the first three of the first sequence are padding
    for backend in ("eager", "sdpa", "stream"):
        output = attend(query, key, value, mask=Causal() & Mask.keep(padded[:, None]), backend=backend).output  # type: ignore[arg-type]
        assert (output[0, :, :3] == 0).all()
        alone = attend(query[:1, :, 3:], key[:1, :, 3:], value[:1, :, 3:], mask=Causal()).output
        assert torch.allclose(output[:1, :, 3:], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("low", [-30.0, -200.0, -1e4])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_low_scores_keep_their_weight_unlike_in_allennlp(low: float, dtype: torch.dtype) -> None:
    """Its masked_softmax multiplies scores by the mask, so that padding has score 0 and takes all the weight."""
    scores = torch.tensor([[low, low - 1, 0.0]], dtype=dtype)
    allowed = torch.tensor([[True, True, False]])
    theirs = torch.softmax(scores.float() * allowed, -1) * allowed
    theirs = theirs / (theirs.sum(-1, keepdim=True) + 1e-13)
    weights = Softmax()(scores, allowed, Pairs(1, 3))
    assert abs(float(weights.sum()) - 1) <= torch.finfo(dtype).eps
    assert float(theirs.sum()) < 0.6  # the fault


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nothing_is_read_when_nothing_is_valid_unlike_in_d2l(dtype: torch.dtype) -> None:
    """−1e6 in the place of −∞ is uniform over padding at valid length 0, and −∞ again in float16."""
    query, key, value = tensors(dtype)
    for backend in ("eager", "sdpa", "local", "stream"):
        attended = attend(query, key, value, mask=Lengths(torch.tensor([[0], [4]])), backend=backend)  # type: ignore[arg-type]
        assert (attended.output[0] == 0).all()
        assert (attended.weights.dense()[0] == 0).all()
        assert torch.isfinite(attended.output).all()
    filled = torch.full((1, S), -1e6).to(dtype)
    if dtype == torch.float16:
        assert torch.isinf(filled).all()  # the fault
    else:
        assert torch.allclose(torch.softmax(filled, -1), torch.tensor(1 / S, dtype=dtype))  # the fault


@pytest.mark.parametrize("backend", ["sdpa", "local"])
def test_the_scale_of_a_folded_gaussian_is_its_own_unlike_in_x_transformers(backend: BackendName) -> None:
    """Its default scale, 1/√width, is taken after a coordinate was added: flash and eager differ by 0.12."""
    query, key, value = tensors()
    for score in (Gaussian(1.4), Dot() + Gaussian(1.4), 0.5 * Gaussian(torch.tensor([2.0, 1.0, 0.5]).double())):
        found = attend(query, key, value, score=score, backend=backend).output
        true = attend(query, key, value, score=score, backend="eager").output
        assert torch.allclose(found, true, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("look", [False, True])
def test_a_causal_mask_stays_whatever_else_is_asked_for_unlike_in_keras(dropout: float, look: bool) -> None:
    """keras#23038: it was lost whenever scores were returned or dropout was above 0."""
    query, key, value = tensors(length=S)
    outputs = []
    for future in (0.0, 1e3):
        torch.manual_seed(0)
        changed = value.clone()
        changed[..., 4:, :] += future
        attended = attend(query, key, changed, mask=Causal(), dropout=dropout)
        if look:
            assert (attended.weights.dense().triu(1) == 0).all()
        outputs.append(attended.output)
    assert torch.equal(outputs[0][..., :4, :], outputs[1][..., :4, :])
    assert not torch.equal(outputs[0][..., 4:, :], outputs[1][..., 4:, :])


def test_weights_are_weights_and_not_their_totals_unlike_in_transformers() -> None:
    """Its flex path returns the log-sum-exp (batch, heads, queries) where callers expect (…, queries, keys)."""
    query, key, value = tensors()
    for backend in ("eager", "sdpa", "local", "stream"):
        weights = attend(query, key, value, backend=backend).weights  # type: ignore[arg-type]
        assert weights.shape == (B, H, L, S)
        for table in (weights.dense(), weights.tile(slice(None), slice(None))):
            assert table.shape == (B, H, L, S)
            assert torch.allclose(table.sum(-1), torch.ones(B, H, L).double(), rtol=0, atol=1e-12)
            assert torch.allclose(table @ value, attend(query, key, value).output, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [None, Mechanism(Additive.projected(2)), Mechanism(normalizer=Sparsemax())],
    ids=["dot", "add", "sparse"],
)
def test_no_dropout_in_evaluation_unlike_in_opennmt(mechanism: Mechanism | None) -> None:
    """OpenNMT-py and eole do not tell the fused call that evaluation has begun."""
    layer = Attention(6, heads=3, dropout=0.5, mechanism=mechanism)
    x = torch.randn(2, 5, 6)

    def read() -> Tensor:
        output: Tensor = layer(x, layer.remember(x))
        return output

    layer.train()
    assert not torch.equal(read(), read())
    layer.eval()
    assert torch.equal(read(), read())
    plain = Attention(6, heads=3, mechanism=mechanism)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(read(), plain(x, plain.remember(x)))


def test_coverage_is_fed_unlike_in_opennmt() -> None:
    """OpenNMT-py and eole build a coverage layer whose input never comes: here what was seen changes what is next."""
    coverage, score = Coverage(3), Additive.projected(3)
    memory = Memory(torch.randn(2, S, 3), torch.randn(2, S, E))
    query, seen = torch.randn(2, 1, 3), build_initial_weights(memory)
    steps = []
    for _ in range(3):
        told = coverage(memory, seen)
        weights = attend(query, told.key, told.value, score=score).weights.dense()
        steps.append(weights[:, 0])
        seen = seen + weights[:, 0]
    assert not torch.allclose(steps[0], steps[1], atol=1e-4)
    loss = coverage_loss(torch.stack(steps, -2)).sum() + steps[-1].square().sum()
    (grad,) = torch.autograd.grad(loss, coverage.features.weight)
    assert (grad != 0).all()


@pytest.mark.parametrize(
    "name", [n for n in catalog.NORMALIZERS if n not in ("sigmoid", "softmax-plus-one", "local-p")]
)
def test_the_softmax_is_over_the_keys_unlike_in_two_collections(name: str) -> None:
    """labml#146 and External-Attention#18 normalize over another axis, which equal sizes let pass."""
    sizes = catalog.Sizes(query=D, key=D, value=E, lead=(B, H), queries=S, keys=S)  # as many queries as keys
    normalizer: Normalizer = catalog.NORMALIZERS[name](sizes).double()
    scores = torch.randn(B, H, S, S, dtype=torch.float64).exp()
    weights = normalizer(scores, None, Pairs(S, S))
    if "monotonic" in name or "chunk" in name:
        assert (weights.sum(-1) <= 1 + 1e-12).all()
    else:
        assert torch.allclose(weights.sum(-1), torch.ones(B, H, S).double(), rtol=0, atol=1e-12)
        assert not torch.allclose(weights.sum(-2), torch.ones(B, H, S).double(), atol=1e-3)


@pytest.mark.parametrize("size", [1.0, 50.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_monotonic_attention_is_never_nan_unlike_mocha(size: float, dtype: torch.dtype) -> None:
    """MoChA-pytorch#4: a cumulative product of 1 − p underflows, and is divided by."""
    scores = (size * torch.randn(2, 31, 401, dtype=dtype)).requires_grad_()
    weights = Monotonic()(scores, None, Pairs(31, 401))
    (grad,) = torch.autograd.grad(weights.square().sum(), scores)
    assert torch.isfinite(weights).all()
    assert torch.isfinite(grad).all()
    assert (weights >= 0).all()
    assert (weights.sum(-1) <= 1 + 401 * torch.finfo(dtype).eps).all()
    stop = torch.sigmoid(scores.detach())
    theirs = stop[:, 0] * (1 - stop[:, 0]).cumprod(-1) / (1 - stop[:, 0]).cumprod(-1)
    if size > 1:
        assert torch.isnan(theirs).any()  # the fault


def test_local_p_is_the_papers_and_no_gaussian_in_the_score() -> None:
    """A log-Gaussian added to the score is renormalized away; the paper's Gaussian is not."""
    query, key, value = (tensor[0, 0] for tensor in tensors())
    center = torch.tensor([0.5, 2.0, 3.25, 5.0, 6.5]).double()
    gaussian = (-0.5 * (torch.arange(S) - center[:, None]) ** 2).exp()
    paper = (torch.softmax(query @ key.T / math.sqrt(D), -1) * gaussian) @ value
    found = attend(query, key, value, normalizer=LocalGaussian(center, 1.0), mask=CenteredWindow(center, 100)).output
    assert torch.allclose(found, paper, rtol=0, atol=1e-12)
    renormalized = attend(query, key, value, bias=Dense(gaussian.log())).output
    assert (renormalized - paper).abs().max() > 0.3


@pytest.mark.parametrize("normalizer", [Sparsemax(), Entmax15(), Softmax(), SoftmaxPlusOne()], ids=repr)
def test_an_empty_row_crashes_no_sparse_normalizer_unlike_entmax(normalizer: Normalizer) -> None:
    """The entmax package crashes or gives NaN where a row is all −∞ (entmax#19)."""
    scores = torch.full((2, 5), -torch.inf, dtype=torch.float64)
    scores[1] = torch.randn(5)
    scores.requires_grad_()
    weights = normalizer(scores, None, Pairs(2, 5))
    assert (weights[0] == 0).all()
    (grad,) = torch.autograd.grad(weights.square().sum(), scores)
    assert (grad[0] == 0).all()
    assert torch.isfinite(grad[1]).all()


def test_a_hard_reading_of_an_empty_row_reads_nothing_not_the_first_value() -> None:
    """argmax of zeros is 0: a one-hot of it would read padding."""
    query, key, value = tensors()
    output = attend(query, key, value, mask=Lengths(torch.tensor([[0], [4]])), aggregate=Argmax()).output
    assert (output[0] == 0).all()
    assert (output[1] != 0).all()
