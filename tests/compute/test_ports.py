"""What users of other libraries type first works, or is answered by one sentence that shows what to write."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import regard
from regard import Additive, Cosine, Dot, Entmax, Lengths, Sparsemax, Window, attend, layers, models
from regard.layers import Attention

X, Y, LENGTHS = torch.randn(2, 5, 6), torch.randn(2, 7, 6), torch.tensor([2, 6])
ONE_SENTENCE = re.compile(r"^[\w.: ]+: got .+, expected .+; fix: .+", re.DOTALL)

ANSWERS: list[tuple[str, Callable[[], object], str]] = [
    ("d2l", lambda: Additive(6, 6, 8)(X, Y, Y, LENGTHS), "attend(query, key, value, score=Additive(…), mask=Lengths("),
    ("d2l", lambda: attend(X, Y, Y, mask=[2, 6]), "write Lengths([…])"),  # type: ignore[arg-type]
    ("d2l", lambda: attend(X, Y, Y, lengths=LENGTHS), "mask=Lengths(lengths)"),  # type: ignore[call-arg]
    ("d2l", lambda: Additive(6, 6, 8, dropout=0.1), "attend(…, dropout=…)"),  # type: ignore[call-arg]
    ("d2l", lambda: layers.AddNorm(6), "regard.layers.PostNorm"),
    ("d2l", lambda: regard.masked_softmax(X, X > 0), "write mask.sum(-1)"),  # type: ignore[arg-type]
    ("addons", lambda: regard.AttentionWrapper, "--preset luong-feeding"),
    ("addons", lambda: Additive(units=8), "hidden=…, with query= and key="),  # type: ignore[call-arg]
    ("addons", lambda: attend(X, Y, Y, memory_sequence_length=2), "mask=Lengths(valid_lens)"),  # type: ignore[call-arg]
    ("addons", lambda: attend(X, Y, Y, probability_fn="softmax"), "normalizer='softmax'"),  # type: ignore[call-arg]
    ("allennlp", lambda: regard.CosineAttention(), "write regard.Cosine"),
    ("allennlp", lambda: regard.LinearMatrixAttention(), "regard.layers.Trilinear(64)"),
    ("allennlp", lambda: regard.Bilinear(vector_dim=6, matrix_dim=6), "query=6, key=6"),  # type: ignore[call-arg]
    ("allennlp", lambda: Dot()(X, Y, X), "attend(query, key, value, score=Dot(…)"),
    ("allennlp", lambda: attend(X, Y), "attend(query, key, key) if keys are the values"),  # type: ignore[call-arg]
    ("opennmt", lambda: regard.GlobalAttention, "regard.Bilinear(64), a score"),
    ("opennmt", lambda: attend(X, Y, Y, attn_type="dot"), "score='dot'"),  # type: ignore[call-arg]
    ("joeynmt", lambda: layers.FeedForward(input_size=6, ff_size=8), "size=6, hidden=8"),  # type: ignore[call-arg]
    ("joeynmt", lambda: layers.PositionwiseFeedForward, "regard.layers.FeedForward(64, 256)"),
    ("keras", lambda: Attention(), "Attention(64, heads=8)"),  # type: ignore[call-arg]
    ("keras", lambda: Attention(6)([X, Y]), "give them one after another: (query, source)"),
    ("keras", lambda: Attention(6)(X, value=Y), "source=… if there is no key"),
    ("keras", lambda: Attention(6, use_bias=False), "nn.Linear(…, bias=False)"),  # type: ignore[call-arg]
    ("espnet", lambda: regard.AttLoc, "regard.layers.LocationFeatures(128"),
    ("espnet", lambda: regard.make_pad_mask, "regard.Lengths(lengths)"),
    ("espnet", lambda: Additive(eprojs=6, dunits=6, att_dim=8), "key=6, query=6, hidden=8"),  # type: ignore[call-arg]
    ("x-transformers", lambda: Attention(6, qk_norm=True), "score=Cosine(temperature=0.1)"),  # type: ignore[call-arg]
    ("x-transformers", lambda: Attention(6, flash=True), "the fastest backend"),  # type: ignore[call-arg]
    ("x-transformers", lambda: Attention(6, rotary=True), "write rotary=Rotary("),  # type: ignore[arg-type]
    ("x-transformers", lambda: layers.TransformerWrapper, "regard.layers.EncoderBlock(64, heads=8)"),
    ("x-transformers", lambda: Window(3), "write Window(before=3, after=3)"),  # type: ignore[call-arg]
    ("x-transformers", lambda: attend(X, X, X, window=3), "mask=Window(before=…"),  # type: ignore[call-arg]
    ("entmax", lambda: regard.sparsemax, "regard.Sparsemax()(scores)"),
    ("entmax", lambda: Sparsemax(dim=-1), "nothing: rows are the last axis"),  # type: ignore[call-arg]
    ("torch", lambda: attend(X, X, X).shape, "write result.output.shape"),
    ("torch", lambda: attend(X, X, X).attn_weights, "write result.weights"),
    ("torch", lambda: attend(X, X, X) + X, "x + attend(…).output"),
    ("torch", lambda: models.Transformer, "regard.models.build_model"),
    ("sklearn", lambda: regard.RBF(), "write regard.Gaussian"),
    ("nobody", lambda: regard.Quux, "see regard list"),
]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(("library", "call", "fix"), ANSWERS)
def test_what_is_called_otherwise_is_one_sentence(library: str, call: Callable[[], object], fix: str) -> None:
    with pytest.raises((regard.RegardError, AttributeError)) as caught:
        call()
    assert ONE_SENTENCE.match(str(caught.value))
    assert fix in str(caught.value).split("; fix: ")[1]


def test_normalizers_take_scores_alone_as_those_of_entmax_do() -> None:
    scores = torch.randn(3, 7).double()
    torch.testing.assert_close(Sparsemax()(scores), Entmax(2.0)(scores))
    torch.testing.assert_close(regard.Softmax()(scores), scores.softmax(-1))
    torch.testing.assert_close(regard.Entmax15()(scores).sum(-1), torch.ones(3).double())


def test_no_mask_may_be_none() -> None:
    torch.testing.assert_close(attend(X, Y, Y, mask=None).output, attend(X, Y, Y).output)
    layer = Attention(6, heads=2)
    torch.testing.assert_close(layer(X, mask=None), layer(X))


def test_weights_multiply_values_and_become_tensors() -> None:
    output, weights = attend(X, Y, Y, mask=Lengths(LENGTHS))
    torch.testing.assert_close(weights @ Y, output)
    assert len(weights) == 2
    torch.testing.assert_close(torch.stack(list(weights)), weights.dense())


class CosineOfMine(Cosine):
    """A score of one's own keeps its own call."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return 2 * super().forward(query, key)


def test_a_score_that_is_wrapped_may_be_inherited_and_compiled() -> None:
    mine = CosineOfMine()
    torch.testing.assert_close(mine(X, Y), 2 * Cosine()(X, Y))
    model = nn.ModuleList([mine])
    assert len(list(model.parameters())) == 0
