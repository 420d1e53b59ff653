"""One tokenizer for all tasks: Chinese by character or by rjieba, other scripts by word."""

import pytest

from regard.tasks.data.segmentation import belongs_to_word, has_unspaced
from regard.tasks.data.words import describe_repetition, find_words, join_words, normalize_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("她在北京大学，2018年。", ["她", "在", "北", "京", "大", "学", "，", "2018", "年", "。"]),
        ("NBA总决赛3,000人", ["NBA", "总", "决", "赛", "3,000", "人"]),
        ("カタカナとひらがな々", list("カタカナとひらがな々")),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("e\u0301te\u0301 naïve", ["e\u0301te\u0301", "naïve"]),
        ("שָׁלוֹם, Привет!", ["שָׁלוֹם", ",", "Привет", "!"]),
        ("안녕하세요 세계", ["안녕하세요", "세계"]),
        ("a_b ١٢٣", ["a", "_", "b", "١٢٣"]),
        (" \n\t", []),
    ],
    ids=["chinese", "mixed", "kana", "beyond the BMP", "hindi", "marks", "hebrew", "korean", "signs", "nothing"],
)
def test_chinese_is_cut_by_character_and_other_scripts_by_word(text: str, words: list[str]) -> None:
    found = find_words(text)
    assert [word.text for word in found] == words
    assert all(text[word.begin : word.end] == word.text for word in found)


def test_translation_cuts_the_same_characters_apart() -> None:
    for character in "中々かカー㐀豈aé가नЖ":
        assert belongs_to_word(character) != has_unspaced(character), character


def test_rjieba_cuts_chinese_into_words_on_request() -> None:
    pytest.importorskip("rjieba")
    text = "我来到北京清华大学 in 2018"
    found = find_words(text, "jieba")
    assert {"北京", "in", "2018"} <= {word.text for word in found}
    assert all(text[word.begin : word.end] == word.text for word in found)
    assert normalize_words("我来到北京。", "jieba").split()[-1] == "北京"


def test_questions_and_captions_have_blanks_between_words_and_no_punctuation() -> None:
    assert normalize_words("红色的圆在哪里？") == "红 色 的 圆 在 哪 里"
    assert normalize_words("A dog , on Tim's T-shirt -- running .") == "a dog on tim's t-shirt running"
    assert join_words(normalize_words("一只狗 in 公园")) == "一只狗 in 公园"


def test_a_vocabulary_that_hardly_repeats_a_word_is_told() -> None:
    clauses = [f"子句{number}" for number in range(45)] + ["子句1"] * 5
    assert describe_repetition("passages", clauses) == [
        "the 50 words of the passages are 45 different ones, most of which occur once: little can be learned about "
        "them; check how the text is cut into words, or add more of it"
    ]
    assert describe_repetition("passages", list("天地玄黄" * 20)) == []
    assert describe_repetition("passages", ["a", "b"]) == []  # too few to say
