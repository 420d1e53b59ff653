"""Questions from files in the format of SQuAD 1.1, cut by article so that no test article is trained on."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.bounds import parse_json
from regard.errors import wrong
from regard.tasks.data.reading import unzipped
from regard.tasks.reading.questions import Answer, Collected, Question, checked

Article = list[Question]


def read_squad(place: Path, *, validation: int, test: int) -> Collected:
    """A file, cut into training, `validation` and `test` articles; or a folder with train-… and dev-… files, of which
    the second is the test set.
    """
    files = sorted(place.glob("*.json*")) if place.is_dir() else [place]
    train = [file for file in files if file.name.startswith("train")]
    dev = [file for file in files if not file.name.startswith("train")]
    if not files:
        raise wrong("data", f"no .json file in {place}", "a file in the format of SQuAD 1.1", "check the path")
    if train and dev:
        articles, notes = read_articles(train[0])
        tests, more = read_articles(dev[0])
        kept, held_out, _ = cut(articles, validation, 0)
        return Collected(kept, held_out, {"test": joined(tests)}, (*notes, *more))
    articles, notes = read_articles((train or dev)[0])
    kept, held_out, tested = cut(articles, validation, test)
    count = f"{len(articles)} articles: {test} for the test, {validation} for validation, the others to learn from"
    return Collected(kept, held_out, {"test": tested}, (count, *notes))


def cut(articles: Sequence[Article], validation: int, test: int) -> tuple[Article, Article, Article]:
    """Questions to learn from, for validation and for the test, by whole articles in the order of a hash."""
    if validation < 1 or test < 0 or validation + test >= len(articles):
        fix = "give more articles, or set data.validation and data.test to fewer"
        got = f"{validation} articles for validation and {test} for the test of {len(articles)}"
        raise wrong("data", got, "at least one left to learn from", fix)
    order = sorted(articles, key=lambda article: hashlib.blake2b(article[0].name.encode()).digest())
    split = validation + test
    return joined(order[split:]), joined(order[:validation]), joined(order[validation:split])


def joined(articles: Sequence[Article]) -> Article:
    return [question for article in articles for question in article]


def read_articles(path: Path) -> tuple[list[Article], list[str]]:
    """The questions of each article, and a note on those without an answer."""
    try:
        articles = parse_json(unzipped(path))["data"]
        found = [article_of(article) for article in articles]
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            raise  # our own sentence
        expected = "a file in the format of SQuAD 1.1"
        fix = "check that it has data, paragraphs, context, qas, answers and answer_start"
        raise wrong(path.name, f"no such thing ({type(error).__name__}: {error})", expected, fix) from None
    answered = [[question for question in article if question.answers] for article in found]
    dropped = sum(map(len, found)) - sum(map(len, answered))
    full = [article for article in answered if article]
    if not full:
        raise wrong(path.name, "no question with an answer", "some", "use SQuAD 1.1, or its format")
    note = f"{path.name}: left out {dropped} questions without an answer in their passage"
    return full, [note] if dropped else []


def article_of(article: Any) -> Article:
    return [
        checked(
            Question(
                str(entry["question"]).strip(),
                paragraph["context"],
                tuple(Answer(answer["text"], int(answer["answer_start"])) for answer in entry["answers"]),
                str(entry["id"]),
            )
        )
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]
