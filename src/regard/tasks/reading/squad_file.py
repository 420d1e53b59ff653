"""Articles of a file in the format of SQuAD 1.1. Answers that are wrong are left out, counted and noted."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.datasets.bounds import parse_json
from regard.datasets.text import shorten
from regard.errors import InputError, wrong
from regard.tasks.data.text_files import read_decompressed
from regard.tasks.reading.questions import Answer, PassageQuestion, is_in_passage

Article = list[PassageQuestion]
EXPECTED = "a file in the format of SQuAD 1.1"
FORM = "write data, a list of articles; in each paragraphs, with context and qas; in these question and answers"


def read_articles(path: Path) -> tuple[list[Article], list[str]]:
    """Return the questions of each article, and notes on what was left out; raise if that is most of the file."""
    counts: Counter[str] = Counter()
    found = [list(parse_article(article, counts)) for article in parse_file(path)]
    full = [article for article in found if article]
    if 2 * counts["wrong"] > counts["answers"] > 0:
        got = f"{counts['wrong']:,} of {counts['answers']:,} answers that are not where answer_start says"
        raise wrong(path.name, got, "most of them in their passages", "count characters from 0, in the whole context")
    if not full:
        raise wrong(path.name, "no question with an answer", "some, as in SQuAD 1.1", FORM)
    return full, describe_losses(path.name, counts)


def parse_file(path: Path) -> list[Any]:
    """Return the articles of a file: a list of them, or an object with such a list as its data."""
    content = read_decompressed(path)
    try:
        values = parse_json(content)
    except InputError:
        raise  # our own sentence
    except ValueError as error:
        raise wrong(path.name, f"no JSON ({shorten(error)})", EXPECTED, "export it as JSON, in UTF-8") from None
    articles = values.get("data") if isinstance(values, dict) else values
    if not isinstance(articles, list):
        inside = f"an object of {', '.join(map(str, values)) or 'nothing'}" if isinstance(values, dict) else "no list"
        raise wrong(path.name, shorten(inside), EXPECTED, FORM)
    return articles


def parse_article(article: Any, counts: Counter[str]) -> Iterator[PassageQuestion]:
    """Yield the questions of an article that have an answer in their passage, and count all that is met."""
    for paragraph in take_list(article, "paragraphs", counts):
        passage = paragraph.get("context") if isinstance(paragraph, dict) else None
        if not isinstance(passage, str):
            counts["malformed"] += 1
            continue
        for entry in take_list(paragraph, "qas", counts):
            text = entry.get("question") if isinstance(entry, dict) else None
            if not isinstance(text, str):
                counts["malformed"] += 1
                continue
            counts["questions"] += 1
            name = str(entry.get("id", f"question {counts['questions']}"))
            answers = tuple(parse_answers(entry, passage, counts))
            if answers:
                yield PassageQuestion(text.strip(), passage, answers, name)
            else:
                counts["unanswered"] += 1


def parse_answers(entry: dict[str, Any], passage: str, counts: Counter[str]) -> Iterator[Answer]:
    """Yield the answers to a question that are where they are said to be."""
    for answer in take_list(entry, "answers", counts):
        counts["answers"] += 1
        text, begin = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
        if isinstance(text, str) and isinstance(begin, int) and is_in_passage(text, begin, passage):
            yield Answer(text, begin)
        else:
            counts["wrong"] += 1


def take_list(values: Any, name: str, counts: Counter[str]) -> list[Any]:
    """Return the list of this name; an empty one if there is none, which is counted."""
    found = values.get(name) if isinstance(values, dict) else None
    if not isinstance(found, list):
        counts["malformed"] += 1
        return []
    return found


def describe_losses(name: str, counts: Counter[str]) -> list[str]:
    """Return notes on what was left out of a file.

    >>> describe_losses("a.json", Counter(answers=30, wrong=2, questions=10, unanswered=1))[0]
    'a.json: left out 2 of 30 answers, which are not where answer_start says'
    """
    losses = {
        "wrong": f"of {counts['answers']:,} answers, which are not where answer_start says",
        "unanswered": f"of {counts['questions']:,} questions, which have no answer in their passage",
        "malformed": "parts that are not as SQuAD 1.1 has them",
    }
    return [f"{name}: left out {counts[kind]:,} {lost}" for kind, lost in losses.items() if counts[kind]]
