"""Questions from files in the format of SQuAD 1.1, split by article so that no test article is trained on."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.datasets.bounds import parse_json
from regard.errors import wrong
from regard.tasks.data.dataset import FixedDataset
from regard.tasks.data.text_files import read_decompressed
from regard.tasks.reading.questions import Answer, PassageQuestion, check_answers

Article = list[PassageQuestion]


def read_squad(place: Path, *, validation: int, test: int) -> FixedDataset[PassageQuestion]:
    """Read a file and split it by article, or a folder with train-… and dev-… files, of which the second is the test.

    `validation` and `test` are numbers of articles.
    """
    files = sorted(place.glob("*.json*")) if place.is_dir() else [place]
    train = [file for file in files if file.name.startswith("train")]
    dev = [file for file in files if not file.name.startswith("train")]
    if not files:
        raise wrong("data", f"no .json file in {place}", "a file in the format of SQuAD 1.1", "check the path")
    if train and dev:
        articles, notes = read_articles(train[0])
        tests, more = read_articles(dev[0])
        kept, held_out, _ = split_articles(articles, validation, 0)
        return FixedDataset(kept, held_out, {"test": join_articles(tests)}, (*notes, *more), cut=True)
    articles, notes = read_articles((train or dev)[0])
    kept, held_out, tested = split_articles(articles, validation, test)
    count = f"{len(articles)} articles: {test} for the test, {validation} for validation, the others to learn from"
    return FixedDataset(kept, held_out, {"test": tested}, (count, *notes), cut=True)


def split_articles(articles: Sequence[Article], validation: int, test: int) -> tuple[Article, Article, Article]:
    """Return questions for training, validation and test, by whole articles in the order of a hash."""
    if validation < 1 or test < 0 or validation + test >= len(articles):
        fix = "give more articles, or set data.validation and data.test to fewer"
        got = f"{validation} articles for validation and {test} for the test of {len(articles)}"
        raise wrong("data", got, "at least one left to learn from", fix)
    order = sorted(articles, key=lambda article: hashlib.blake2b(article[0].name.encode()).digest())
    split = validation + test
    return join_articles(order[split:]), join_articles(order[:validation]), join_articles(order[validation:split])


def join_articles(articles: Sequence[Article]) -> Article:
    """Return the questions of all articles."""
    return [question for article in articles for question in article]


def read_articles(path: Path) -> tuple[list[Article], list[str]]:
    """Return the questions of each article, and a note on those without an answer."""
    try:
        articles = parse_json(read_decompressed(path))["data"]
        found = [parse_article(article) for article in articles]
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


def parse_article(article: Any) -> Article:
    """Return the questions of an article."""
    return [
        check_answers(
            PassageQuestion(
                str(entry["question"]).strip(),
                paragraph["context"],
                tuple(Answer(answer["text"], int(answer["answer_start"])) for answer in entry["answers"]),
                str(entry["id"]),
            )
        )
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]
