"""What a translator is seen to look at while it says a hypothesis is what the search says of it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.errors import InputError
from regard.inspect.draw.chapters import Chapter
from regard.inspect.draw.report import build_contents, render_report
from regard.models import build_model
from regard.tasks.data import Vocabularies
from regard.tasks.data.vocabulary import TokenVocabulary
from regard.tasks.translation import TranslationSearchOptions, Translator, build_preset
from regard.tasks.translation.attention import record_translation
from tests.models.small_models import CONFIGS, V, W

SENTENCE = "a b c d e"


def build_translator(name: str) -> Translator:
    """Return a small translator with random weights."""
    torch.manual_seed(3)
    config = replace(build_preset(), model=CONFIGS[name])
    words = Vocabularies(TokenVocabulary(list("abcdefghijklm"), "word"), TokenVocabulary(list("nopqrstuv"), "word"))
    assert (len(words.source), len(words.target)) == (W, V)
    model = build_model(CONFIGS[name], source=W, target=V).double().eval()
    return Translator(config, words, model)


@pytest.mark.parametrize("name", sorted(set(CONFIGS) - {"plain"}))
def test_the_last_look_at_the_source_is_the_searchs_own(name: str, as_installed: None) -> None:
    own = build_translator(name)
    one = own.translate([SENTENCE], TranslationSearchOptions(2, 2), attention=True)[0]
    for said in one.best:
        recording = record_translation(own, one.ids, said.ids)
        site = list(recording)[-1]
        assert said.weights is not None
        assert recording[site].dense().mean(0) == pytest.approx(said.weights, abs=1e-6)
        assert list(recording.labels[site].queries) == said.tokens
        assert list(recording.labels[site].keys) == one.source


def test_a_transformer_shows_every_layer_with_its_own_tokens(as_installed: None) -> None:
    own = build_translator("transformer")
    one = own.translate([SENTENCE], TranslationSearchOptions(1), attention=True)[0]
    recording = record_translation(own, one.ids, one.best[0].ids)
    assert list(recording) == [
        "encoder 0",
        "encoder 1",
        "decoder 0, itself",
        "decoder 0",
        "decoder 1, itself",
        "decoder 1",
    ]
    labels = recording.labels["decoder 0, itself"]
    assert labels.queries == labels.keys == ("<s>", *one.best[0].tokens[:-1])  # the last has not been read yet
    above = torch.ones(recording["decoder 0, itself"].shape[1:]).triu(1).bool()
    assert (recording["decoder 0, itself"].dense()[:, above] == 0).all()  # nobody looks at what is not said yet
    assert recording.labels["encoder 1"].queries == recording.labels["encoder 1"].keys == tuple(one.source)


def test_a_report_of_a_beam_is_small(as_installed: None, tmp_path: Path) -> None:
    own = build_translator("transformer")
    one = own.translate([SENTENCE], TranslationSearchOptions(5, 5), attention=True)[0]
    chapters = [Chapter(said.text, record_translation(own, one.ids, said.ids), said.score) for said in one.best]
    data = build_contents(chapters, SENTENCE)
    assert len(data["chapters"]) == 5
    assert len(data["tables"]) <= 2 + 5 * 4  # the encoder looks once for all
    assert len(render_report(chapters, SENTENCE)) < 1_000_000


def test_a_model_without_attention_is_refused(as_installed: None) -> None:
    with pytest.raises(InputError, match=r"^show: got a model without attention"):
        record_translation(build_translator("plain"), [4, 5, 3], [4])
