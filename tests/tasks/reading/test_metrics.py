"""The metric of SQuAD on cases worked out by hand."""

import pytest

from regard.tasks.reading.metrics import compute_metrics, compute_sums, exact_match, f1, normalize_answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("a  b,\tc!", "b c"),
        ("an apple a day", "apple day"),
        ("anthem", "anthem"),  # an article inside a word is none
        ("U.S.", "us"),
        ("the", ""),
        ("“quoted”", "“quoted”"),  # the authors know ASCII marks only
        ("20–30", "20–30"),
    ],
    ids=["article", "blanks", "articles", "inside", "marks", "nothing", "quotes", "dash"],
)
def test_normalizing_follows_the_authors(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


def test_exact_is_of_normalized_text() -> None:
    assert exact_match("the Eiffel Tower.", "Eiffel tower") == 1
    assert exact_match("Eiffel", "Eiffel tower") == 0


def test_f1_counts_words_as_often_as_they_occur() -> None:
    assert f1("new new york", "new york city") == pytest.approx(2 * (2 / 3) * (2 / 3) / (4 / 3))
    assert f1("york", "new york city") == pytest.approx(0.5)
    assert f1("paris", "london") == 0
    assert f1("the", "a") == 0  # nothing is left of either; the authors give 0


def test_the_best_of_several_right_answers_counts() -> None:
    found = compute_metrics(compute_sums(["york", "red"], [["new york city", "york"], ["blue"]]))
    assert found == {"em": 50.0, "f1": 50.0}
    assert compute_metrics(compute_sums(["york"], [["new york city", "in york"]]))["f1"] == pytest.approx(100 * 2 / 3)


@pytest.mark.parametrize(
    ("said", "right", "exact", "shared"),
    [
        ("《红楼梦》", "红楼梦。", 1, 1),
        ("NBA 总决赛", "nba总决赛", 1, 1),
        ("红楼梦的作者", "红楼梦", 0, 2 * (3 / 6) * 1 / (3 / 6 + 1)),
        ("京北", "北京", 0, 0.5),  # the longest run that both share is one character
        ("", "北京", 0, 0),
        ("2018年", "2018年5月", 0, 2 * 1 * (2 / 4) / (1 + 2 / 4)),
    ],
)
def test_chinese_answers_are_scored_by_character_as_published(said: str, right: str, exact: int, shared: float) -> None:
    assert exact_match(said, right) == exact
    assert f1(said, right) == pytest.approx(shared)
