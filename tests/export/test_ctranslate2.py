"""CTranslate2 gives what torch gives: hypotheses, scores and where they looked."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from regard.errors import InputError
from regard.export import CTranslate2Translator, export
from regard.models import ModelConfig, build_model
from regard.models.config import TransformerConfig
from regard.models.search import Hypothesis
from regard.tasks.data import Vocabularies
from regard.tasks.data.vocabulary import BEGIN, END, TokenVocabulary
from regard.tasks.translation import TranslationConfig, TranslationSearchOptions, Translator
from regard.tasks.translation.config import TranslationVocabulary
from regard.tasks.translation.encoded_pairs import encode_texts
from regard.tasks.translation.translations import search_batch

SOURCE = TokenVocabulary(
    [f"s{number}" for number in range(31)] + ["<unk>"], "blank"
)  # a word that is spelled as a special one
TARGET = TokenVocabulary([f"t{number}" for number in range(37)], "blank")
TEXTS = ["s1 s2 s3 s4 s5", "s7", "s9 s30 s2 <unk>", "", "s4 s4 s4 s4 s4 s4 s4", "s11 s12"]

pytestmark = pytest.mark.usefixtures("as_installed")  # a model is trained


def make_config(**changes: object) -> ModelConfig:
    blocks = TransformerConfig(layers=2, decoder_layers=3, heads=4, hidden=20)
    return ModelConfig(size=24, tied="output", longest=64, transformer=replace(blocks, **changes))


def build_untrained(model: ModelConfig) -> Translator:
    """Return a translator with random weights, which ends after some tokens."""
    torch.manual_seed(3)
    made = build_model(model, source=len(SOURCE), target=len(TARGET)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
        made.decoder.output.bias[END] += 1.0
        made.decoder.output.bias[:3] -= 12.0
    settings = replace(TranslationConfig(vocabulary=TranslationVocabulary(joint=False)), model=model)
    return Translator(settings, Vocabularies(SOURCE, TARGET), made)


@cache
def train_translator() -> Translator:
    """Return a translator that has learned, a little, to reverse a source."""
    made = build_untrained(replace(make_config(), dropout=0.0))
    optimizer = torch.optim.AdamW(made.model.parameters(), lr=5e-3)
    for _ in range(100):
        lengths = torch.randint(1, 8, (24,))
        source = torch.randint(4, 36, (24, 8)).scatter(1, lengths[:, None], END)
        target = torch.full((24, 10), END)
        for row, length in enumerate(lengths.tolist()):
            target[row, 1 : length + 1] = source[row, :length].flip(0)
        target[:, 0] = BEGIN
        losses = made.model.loss(source, lengths + 1, target, lengths + 2, smoothing=0.1)
        (losses.total / losses.tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    return made


def convert(torchs: Translator, folder: Path) -> CTranslate2Translator:
    export(torchs, folder, "ct2")
    return CTranslate2Translator(torchs, folder)


def check_alike(torchs: Translator, other: Translator, search: TranslationSearchOptions) -> int:
    """Check that both translate alike, and return how many tokens were compared."""
    wanted, found = (one.translate(TEXTS, search, attention=True) for one in (torchs, other))
    for one, two in zip(wanted, found, strict=True):
        assert [said.tokens for said in one.best] == [said.tokens for said in two.best]
        assert (one.source, one.ids) == (two.source, two.ids)
        for left, right in zip(one.best, two.best, strict=True):
            assert left.text == right.text
            assert left.score == pytest.approx(right.score, abs=1e-4)
            assert left.log_prob == pytest.approx(right.log_prob, abs=1e-4)
            torch.testing.assert_close(left.weights, right.weights, rtol=0, atol=1e-5)
    return sum(len(one.best[0].tokens) for one in wanted if one.best)


CONFIGS = {
    "pre": make_config(),
    "post": make_config(norm="post"),
    "learned": make_config(positions="learned"),
    "rotary": make_config(positions="rotary"),
    "grouped": make_config(groups=2),
    "one group": make_config(groups=1),
    "untied": replace(make_config(), tied="none"),
}
SEARCHES = {
    "greedy": TranslationSearchOptions(beam=1),
    "exact": TranslationSearchOptions(beam=5, length_penalty=0.0),
    "full": TranslationSearchOptions(beam=5, length_penalty=0.0, stop="full"),
    "long": TranslationSearchOptions(beam=4, length_penalty=1.0, stop="full"),
    "several": TranslationSearchOptions(beam=4, best=3, length_penalty=0.6, stop="full"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_kind_of_transformer_is_the_same_function(name: str, tmp_path: Path) -> None:
    torchs = build_untrained(CONFIGS[name])
    other = convert(torchs, tmp_path / "model")
    source, target = [5, 9, 12, 33, 7, END], [6, 7, 8, 9, 20]
    names = [[own[number] for number in row] for own, row in zip(other.names, (source, target), strict=True)]
    (found,) = other.engine.score_batch([names[0]], [names[1]])
    logits = torchs.model(torch.tensor([source]), torch.tensor([6]), torch.tensor([[BEGIN, *target]]))
    wanted = logits.log_softmax(-1)[0, range(6), [*target, END]]
    torch.testing.assert_close(torch.tensor(found.log_probs), wanted.detach(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_finds_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[object] = []  # to torch
    monkeypatch.setattr(
        "regard.export.ctranslate2.search_batch", lambda *a, **k: left.extend(a[1]) or search_batch(*a, **k)
    )
    torchs = train_translator()
    assert check_alike(torchs, convert(torchs, tmp_path / "model"), SEARCHES[name]) > 5
    assert len(left) <= (5 if name == "several" else 1)


def test_what_is_never_said_and_what_never_ends_is_left_to_torch(tmp_path: Path) -> None:
    torchs = build_untrained(CONFIGS["pre"])
    with torch.no_grad():
        torchs.model.decoder.output.bias[1] += 14.0  # unknown, more probable than any other
        torchs.model.decoder.output.bias[END] -= 8.0
    assert check_alike(torchs, convert(torchs, tmp_path / "model"), SEARCHES["exact"]) > 60


def test_a_beam_that_was_full_too_soon_is_searched_again(tmp_path: Path) -> None:
    torchs, search = train_translator(), TranslationSearchOptions()
    other = convert(torchs, tmp_path / "model")
    rows = encode_texts([text for text in TEXTS if text], SOURCE)
    best = other.search_rows(rows, replace(search, stop="full"))
    found = other.improve(rows, [[Hypothesis((), -50.0, -50.0)], *best[1:]], search)
    wanted = search_batch(torchs.model, rows[:1], search, attention=False)[0]
    assert [one.tokens for one in found[0]] == [one.tokens for one in wanted]
    assert found[1:] == best[1:]


def test_nothing_to_translate(tmp_path: Path) -> None:
    assert convert(train_translator(), tmp_path / "model").translate([], TranslationSearchOptions()) == []


@pytest.mark.parametrize(
    ("search", "sentence"),
    [
        (
            TranslationSearchOptions(coverage=0.2),
            "coverage: got 0.2, expected 0 for the ct2 engine; fix: leave it out, or use --engine torch",
        ),
        (
            TranslationSearchOptions(stop="exact"),
            "stop: got exact, expected full for the ct2 engine, but for the best of a beam with --length 0; "
            "fix: use --stop full, --length 0, or --engine torch",
        ),
    ],
    ids=["coverage", "exact"],
)
def test_searches_that_it_has_not_are_refused(search: TranslationSearchOptions, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        convert(train_translator(), tmp_path / "model").translate(TEXTS, search)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("changes", "got", "expected"),
    [
        ({"decoder": "luong"}, "model.decoder: got luong", "transformer"),
        ({"positions": "alibi"}, "model.transformer.positions: got alibi", "sinusoidal, learned or rotary"),
        ({"source_score": "cosine"}, "model.transformer.source_score: got cosine", "scaled-dot"),
        ({"normalizer": "sparsemax"}, "model.transformer.normalizer: got sparsemax", "softmax"),
    ],
    ids=["recurrent", "alibi", "score", "normalizer"],
)
def test_models_that_it_has_not_are_refused(changes: dict[str, str], got: str, expected: str, tmp_path: Path) -> None:
    model = replace(make_config(), **changes) if "decoder" in changes else make_config(**changes)
    with pytest.raises(InputError) as caught:
        export(build_untrained(model), tmp_path / "model", "ct2")
    fix = "use --engine torch or --format onnx, or train with --preset transformer-tiny"
    assert str(caught.value) == f"{got}, expected {expected}, which is what CTranslate2 has; fix: {fix}"
    assert not list(tmp_path.iterdir())
