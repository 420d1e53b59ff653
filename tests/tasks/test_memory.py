"""Stories by command: facts are found, hop by hop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from walking import walk

from regard.tasks import import_task
from regard.tasks.memory.config import MemoryData
from regard.tasks.memory.stories import KINDS, PLACES, generate_stories, generate_story, to_tensors

Regard = Callable[..., Any]
BRIEF = {
    "people": 3,
    "moves": 1,
    "data.items": 3200,
    "held_out": 60,
    "size": 48,
    "stop.epochs": 8,
    "every.log": 5,
    "every.save": 25,
    "optimizer.rate": 0.01,
}


def test_one_fact_is_found_after_200_steps(regard: Regard) -> None:
    own = ("anna walks to harbor. boris walks to attic. where is anna?",)
    reports = walk(regard, "memory", fields=BRIEF, cut_at=40, item=own)
    assert list(reports) == list(KINDS)
    assert reports["one fact"]["accuracy"] > 60
    assert reports["one fact"]["pointed"] > 60
    assert regard("predict", "run", *own).output.splitlines()[-1].startswith("where is anna? ")


def find_last_fact(facts: list[str], name: str) -> int:
    """Return the last fact that begins with this name."""
    return max(number for number, fact in enumerate(facts) if fact.startswith(f"{name} "))


@pytest.mark.parametrize("kind", range(3), ids=KINDS)
def test_answers_follow_from_the_facts_alone(kind: int) -> None:
    """Whoever goes from fact to fact by the first and last word of each arrives at the answer, through the support."""
    random = np.random.default_rng(7)
    for _ in range(50):
        one = generate_story(MemoryData(), kind, random)
        word, path = one.question.split()[-1], []
        while word not in PLACES:
            path.append(find_last_fact(one.facts, word))
            word = one.facts[path[-1]].split()[-1]
        assert word == one.answer
        assert path == one.support
        assert len(path) == kind + 1


def test_facts_that_are_not_there_are_not_looked_at() -> None:
    data = MemoryData()
    learned = import_task("memory").build_task(import_task("memory").configure(None, (), {"data.items": "30"}))
    facts, question, _, support = to_tensors(generate_stories(data, 30, (5,)), data)
    weights = learned.model()(facts, question).weights.detach()
    assert float(weights.masked_select(~(facts > 0).any(-1)[:, None]).abs().max()) == 0
    assert float(weights.sum(-1).max()) <= 1 + 1e-5
    assert int(support.max()) < facts.shape[1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("anna walks to moon. where is anna?", "item: got 'moon', expected words of the stories: anna"),
        ("where is anna?", "expected facts, each with a full stop, and a question; fix: write"),
        ("anna walks to harbor. anna walks.", "expected facts, each with a full stop, and a question"),
    ],
    ids=["unknown word", "no facts", "no question"],
)
def test_a_story_that_cannot_be_read_is_one_sentence(text: str, sentence: str) -> None:
    from regard.errors import InputError
    from regard.tasks.memory.stories import parse_story

    with pytest.raises(InputError) as raised:
        parse_story(text, MemoryData())
    assert sentence in str(raised.value)
