"""Questions from files in the format of SQuAD 1.1, split by article so that no test article is trained on."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data.dataset import FixedDataset
from regard.tasks.reading.questions import PassageQuestion
from regard.tasks.reading.squad_file import Article, read_articles

FEW = 12  # articles: fewer are cut by passage
VALIDATION, TEST = (1, 12), (5, 24)  # shares of the articles that are held out
ENOUGH = 1000  # questions for validation


def read_squad(place: Path, *, validation: int | None, test: int | None) -> FixedDataset[PassageQuestion]:
    """Read a file and split it by article, or a folder with train-… and dev-… files, of which the second is the test.

    `validation` and `test` are numbers of articles; none: shares of them.
    """
    files = sorted(place.glob("*.json*")) if place.is_dir() else [place]
    train = [file for file in files if file.name.startswith("train")]
    dev = [file for file in files if not file.name.startswith("train")]
    if not files:
        raise wrong("data", f"no .json file in {place}", "a file in the format of SQuAD 1.1", "check the path")
    if train and dev:
        articles, notes = read_articles(train[0])
        tests, more = read_articles(dev[0])
        kept, held_out, _ = split_articles(cut_few(articles, validation), validation, 0)
        return FixedDataset(kept, held_out, {"test": join_articles(tests)}, (*notes, *more), cut=True)
    articles, notes = read_articles((train or dev)[0])
    groups = cut_few(articles, validation if test is None else test)
    if test is None:
        test = max(1, len(groups) * TEST[0] // TEST[1])
    kept, held_out, tested = split_articles(groups, validation, test)
    noun = "articles" if len(groups) == len(articles) else "passages"
    count = f"cut by {noun}: {test:,} of {len(groups):,} {noun} are for the test, others for validation and training"
    return FixedDataset(kept, held_out, {"test": tested}, (count, *notes), cut=True)


def cut_few(articles: Sequence[Article], wanted: int | None) -> Sequence[Article]:
    """Return the articles; if these are few and no number of them is wanted, the questions of each passage."""
    if wanted is not None or len(articles) >= FEW:
        return articles
    groups: dict[str, Article] = {}
    for question in join_articles(articles):
        groups.setdefault(question.passage, []).append(question)
    return list(groups.values())


def split_articles(articles: Sequence[Article], validation: int | None, test: int) -> tuple[Article, Article, Article]:
    """Return questions for training, validation and test, by whole articles in the order of a hash."""
    order = sorted(articles, key=lambda article: hashlib.blake2b(article[0].name.encode()).digest())
    if validation is None:
        validation = count_validation(order)
    if validation < 1 or test < 0 or validation + test >= len(articles):
        fix = "give more articles, or set data.validation and data.test to fewer"
        got = f"{validation} articles for validation and {test} for the test of {len(articles)}"
        raise wrong("data", got, "at least one left to learn from", fix)
    split = validation + test
    return join_articles(order[split:]), join_articles(order[:validation]), join_articles(order[validation:split])


def count_validation(order: Sequence[Article]) -> int:
    """Return how many articles are for validation: a share of them, or fewer that have enough questions."""
    count, questions = 0, 0
    while count < max(1, len(order) * VALIDATION[0] // VALIDATION[1]) and questions < ENOUGH:
        questions += len(order[count])
        count += 1
    return count


def join_articles(articles: Sequence[Article]) -> Article:
    """Return the questions of all articles."""
    return [question for article in articles for question in article]
