"""What is said of translations, against sacrebleu asked directly."""

import pytest
import sacrebleu

from regard.errors import InputError
from regard.tasks.translation.metrics import score_translations

SAID = ["der hund &apos; rex &apos; , ein terrier , bellt laut .", "zwei kinder spielen im garten ."]
RIGHT = ["der hund &apos; rex &apos; ( ein terrier ) bellt laut .", "zwei kinder spielen im garten !"]
TEXTS = (
    ["der hund 'rex', ein terrier, bellt laut.", "zwei kinder spielen im garten."],
    ["der hund 'rex' (ein terrier) bellt laut.", "zwei kinder spielen im garten!"],
)


def test_bleu_of_text_stands_beside_bleu_of_tokens() -> None:
    figures = score_translations(SAID, RIGHT, "none", "de").scores
    assert list(figures) == ["BLEU", "chrF", "BLEU detokenized"]
    said, right = TEXTS
    assert figures["BLEU detokenized"].value == sacrebleu.corpus_bleu(said, [right]).score
    assert figures["BLEU"].value == sacrebleu.corpus_bleu(SAID, [RIGHT], tokenize="none", force=True).score
    assert figures["BLEU"].value != figures["BLEU detokenized"].value
    assert "|tok:13a|" in figures["BLEU detokenized"].signature
    assert "|detok:de.sacremoses." in figures["BLEU detokenized"].signature


def test_text_is_put_together_as_its_language_wants_it() -> None:
    french = ["l&apos; homme dort encore ici ."], ["l&apos;homme dort encore ici ."]
    assert score_translations(*french, "none", "fr").scores["BLEU detokenized"].value == pytest.approx(100)
    assert score_translations(*french, "none", "de").scores["BLEU detokenized"].value < 100


def test_a_language_has_a_code() -> None:
    sentence = "detokenize: got German, expected the code of a language; fix: write en, de, fr or another"
    with pytest.raises(InputError, match=f"^{sentence}$"):
        score_translations(SAID, RIGHT, "none", "German")
