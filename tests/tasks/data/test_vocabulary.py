"""Vocabularies: text to numbers and back without loss, saved and loaded without running anything."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.tasks.data import (
    BEGIN,
    END,
    PADDING,
    UNKNOWN,
    SentencePair,
    VocabularyConfig,
    build_vocabularies,
    build_vocabulary,
    load_vocabularies,
    save_vocabularies,
)
from regard.tasks.data.segmentation import join_tokens, split_words
from regard.tasks.data.vocabularies import load_vocabulary
from regard.tasks.data.vocabulary import Kind

no_jieba = pytest.mark.skipif(find_spec("rjieba") is None, reason="the extra zh is not installed")
KINDS = [pytest.param(kind, marks=no_jieba) if kind == "jieba" else kind for kind in get_args(Kind)]
TEXTS = [
    "I'm here, at 10:30!",
    "Va\u202f! Où est-il ?",
    "我是中国人，你好。",
    "नमस्ते दुनिया",
    "他在 Python 3.11 里写代码",
    "a_b  c < d > e / s",
] * 3


def make_config(kind: Kind, **options: object) -> VocabularyConfig:
    size = {"bpe": 80, "unigram": 68}.get(kind, 1000)
    return VocabularyConfig(kind, **{"size": size} | options)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_encoded_is_decoded(kind: Kind, tmp_path: Path) -> None:
    vocabulary = build_vocabulary(TEXTS, make_config(kind))
    for text in TEXTS:
        numbers = vocabulary.encode(text)
        plain = " ".join(word for word in text.split(" ") if word) if kind != "character" else text
        expected = " ".join(text.split()) if kind == "blank" else plain
        assert vocabulary.decode(numbers) == expected
        assert UNKNOWN not in numbers
        assert vocabulary.decode([BEGIN, *numbers, END, PADDING, numbers[0]]) == expected
        assert max(numbers) < len(vocabulary)
        assert min(numbers) > END
        assert len(vocabulary.get_tokens(numbers)) == len(numbers)
    assert vocabulary.encode_all(TEXTS) == [vocabulary.encode(text) for text in TEXTS]
    vocabulary.save(tmp_path, "source")
    loaded = load_vocabulary(tmp_path, "source")
    assert len(loaded) == len(vocabulary)
    assert loaded.encode_all(TEXTS) == vocabulary.encode_all(TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_known_is_said_and_shown(kind: Kind) -> None:
    vocabulary = build_vocabulary(TEXTS, make_config(kind))
    numbers = vocabulary.encode("I'm ☃")
    assert UNKNOWN in numbers
    assert "⁇" in vocabulary.decode(numbers)
    assert [token.strip("▁") for token in vocabulary.find_unknown("I'm ☃") if token.strip("▁ ")] == ["☃"]
    assert vocabulary.find_unknown("I'm at") == []


@pytest.mark.parametrize("kind", KINDS)
def test_case_may_be_ignored(kind: Kind, tmp_path: Path) -> None:
    vocabulary = build_vocabulary(["a b ab abc"] * 5, make_config(kind, lowercase=True, size=9))
    vocabulary.save(tmp_path, "x")
    for one in (vocabulary, load_vocabulary(tmp_path, "x")):
        assert one.decode(one.encode("AB A")) == "ab a"


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_spells_a_special_token_is_only_text(kind: Kind) -> None:
    vocabulary = build_vocabulary([*TEXTS, "<s> </s> <pad>"], make_config(kind))
    assert not {PADDING, BEGIN, END} & set(vocabulary.encode("<s> </s> <pad>"))


@given(st.text(st.characters(codec="utf-8", exclude_characters="▁ ", exclude_categories=["Cc"])) | st.just("a b"))
@example("e\u0301te\u0301")
def test_words_can_be_joined_again(text: str) -> None:
    assert join_tokens(split_words(text), "word") == text


def test_words_keep_their_marks_and_chinese_stands_alone() -> None:
    assert split_words("नमस्ते दुनिया") == ["▁नमस्ते", "▁दुनिया"]
    assert split_words("e\u0301te\u0301 我们") == ["▁e\u0301te\u0301", "▁我", "们"]


def test_the_most_frequent_are_kept() -> None:
    vocabulary = build_vocabulary(["b a", "b a", "c b"], VocabularyConfig("blank", size=6))
    assert [vocabulary.get_tokens([number])[0] for number in range(len(vocabulary))] == [
        *("<pad>", "<unk>", "<s>", "</s>"),
        *("b", "a"),
    ]
    assert len(build_vocabulary(["b a", "b a", "c b"], VocabularyConfig("blank", minimum=3))) == 5


def test_one_vocabulary_for_both_sides_or_two(tmp_path: Path) -> None:
    pairs = [SentencePair("one two", "un deux"), SentencePair("three", "trois")]
    shared = build_vocabularies(pairs, make_config("blank"))
    assert shared.joint
    assert shared.source.encode("one deux") != [UNKNOWN, UNKNOWN]
    two = build_vocabularies(pairs, make_config("blank"), make_config("character"))
    assert not two.joint
    assert two.target.decode(two.target.encode("un trois")) == "un trois"
    for name, both in (("shared", shared), ("two", two)):
        (tmp_path / name).mkdir()
        save_vocabularies(both, tmp_path / name)
        loaded = load_vocabularies(tmp_path / name)
        assert loaded.joint == both.joint
        assert loaded.target.encode("un deux") == both.target.encode("un deux")


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("unigram", 5000, r"^vocabulary.size: got 5000, expected at most \d+ for this text; fix: use size=\d+ or"),
        ("bpe", 5000, r"^vocabulary.size: got 5000, expected at most \d+ for this text; fix: use size=\d+ or le"),
        ("bpe", 30, r"^vocabulary.size: got 30, expected at least \d+, one for each character; fix: use size="),
    ],
)
def test_a_size_that_the_text_does_not_allow(kind: Kind, size: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        build_vocabulary(TEXTS, VocabularyConfig(kind, size=size))
    allowed = int(str(caught.value).partition("size=")[2].split(" ")[0])
    assert len(build_vocabulary(TEXTS, VocabularyConfig(kind, size=allowed))) == allowed


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_without_a_size_little_text_has_as_many_pieces_as_it_can(kind: Kind) -> None:
    with pytest.raises(InputError, match=r"at most \d+ for this text") as caught:
        build_vocabulary(TEXTS, VocabularyConfig(kind, size=8000))
    allowed = int(str(caught.value).partition("size=")[2].split(" ")[0])
    assert len(build_vocabulary(TEXTS, VocabularyConfig(kind))) == allowed


def test_files_of_others_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^vocabulary: got .*source.json, which cannot be read \(FileNotFound"):
        load_vocabularies(tmp_path)
    build_vocabulary(TEXTS, make_config("bpe")).save(tmp_path, "source")
    (tmp_path / "source.model").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"^vocabulary: got 19 bytes that are not a sentencepiece model, expected"):
        load_vocabulary(tmp_path, "source")
    (tmp_path / "source.model").unlink()
    with pytest.raises(InputError, match=r"^vocabulary: got .*source.json with a part missing"):
        load_vocabulary(tmp_path, "source")
    (tmp_path / "source.json").write_text(json.dumps({"format": 2, "kind": "word"}))
    with pytest.raises(InputError, match=r"^vocabulary: got .*source.json of format 2, expected format 1; fix: "):
        load_vocabulary(tmp_path, "source")


@pytest.mark.parametrize(("package", "kind", "extra"), [("rjieba", "jieba", "zh"), ("sentencepiece", "bpe", "text")])
def test_a_missing_package_is_asked_for(package: str, kind: Kind, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    expected = rf"^{package}: got no such package, expected it installed; fix: pip install 'regard\[{extra}\]'"
    with pytest.raises(InputError, match=expected):
        build_vocabulary(TEXTS, make_config(kind))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_keep_what_is_spelt_as_a_special_token_and_learn_from_long_texts(kind: Kind) -> None:
    texts = ["a dog ran <s> here </s>", "<unk> or <pad>", "x\ty", "some words " * 900 + "ß", "under ▁ x"]
    pieces = build_vocabulary(texts * 3, VocabularyConfig(kind))
    for text in texts[:2]:
        assert pieces.decode(pieces.encode(text)) == text
        assert not set(pieces.encode(text)) & {BEGIN, END, UNKNOWN}
    assert pieces.decode(pieces.encode("x\ty")) == "x y"
    assert pieces.find_unknown("x\tß") == []
    assert pieces.decode(pieces.encode("under ▁ x")) != "under ▁ x"
    assert (pieces.find_lost_characters("under ▁ x"), pieces.find_lost_characters("under x")) == (["▁"], [])


def test_a_sign_that_stands_for_a_blank_is_told_where_it_is_lost() -> None:
    text = "under ▁ x"
    kinds: tuple[Kind, ...] = ("word", "blank", "character")
    for kind in kinds:
        known = build_vocabulary([text], VocabularyConfig(kind))
        assert (known.decode(known.encode(text)) != text) == bool(known.find_lost_characters(text)), kind
