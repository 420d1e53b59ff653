"""Stories by command: facts are found, hop by hop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from walking import walk

from regard.tasks import import_task
from regard.tasks.known_comparisons import ASKED
from regard.tasks.memory.config import MemoryData, MemoryModel
from regard.tasks.memory.published_errors import PUBLISHED_ERRORS
from regard.tasks.memory.question_kinds import QUESTION_KINDS, generate_kind, generate_kind_splits, name_kind
from regard.tasks.memory.stories import KINDS, PLACES, choose_format, generate_stories, generate_story
from regard.tasks.memory.story_format import Story
from regard.tasks.memory.task import MemoryNetwork, weigh_positions

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


def test_without_attention_all_facts_that_are_there_count_alike() -> None:
    network = MemoryNetwork(MemoryModel("none", "softmax"), choose_format(MemoryData()))
    facts = torch.zeros(1, 6, network.places.shape[1], dtype=torch.long)  # type: ignore[union-attr]
    facts[0, :4, :3] = torch.randint(1, 9, (4, 3))
    weights = network(facts, facts[:, 0]).weights
    torch.testing.assert_close(weights, torch.tensor([0.25] * 4 + [0.0] * 2).expand(weights.shape))


def test_facts_that_are_not_there_are_not_looked_at() -> None:
    data = MemoryData()
    learned = import_task("memory").build_task(import_task("memory").configure(None, (), {"data.items": "30"}))
    facts, question, _, support = choose_format(data).to_tensors(generate_stories(data, 30, (5,)))
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

    with pytest.raises(InputError) as raised:
        choose_format(MemoryData()).parse_story(text)
    assert sentence in str(raised.value)


STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}


def solve_holding(one: Story) -> list[str]:
    """Kinds 7 and 8: what is taken and not left."""
    person, held = one.question.split()[-1], set()
    for who, verb, thing in map(str.split, one.facts):
        if who == person:
            (held.add if verb == "takes" else held.discard)(thing)
    return sorted(held)


def solve_size(one: Story) -> str:
    """Kind 18: by the closure of what fits in what."""
    fits = {(fact.split()[0], fact.split()[-1]) for fact in one.facts}
    for _ in one.facts:
        fits |= {(a, d) for a, b in fits for c, d in fits if b == c}
    return "yes" if (one.question.split()[1], one.question.split()[-1]) in fits else "no"


def solve_path(one: Story) -> tuple[int, int]:
    """Kind 19: how far the goal is from the start, by walking from fact to fact."""
    start, goal = one.question.split()[-3], one.question.split()[-1]
    at = {start: (0, 0)}
    for _ in one.facts:
        for there, _, way, _, here in map(str.split, one.facts):
            x, y = STEPS[way]
            if here in at:
                at[there] = (at[here][0] + x, at[here][1] + y)
            if there in at:
                at[here] = (at[there][0] - x, at[there][1] - y)
    return at[goal]


def solve_two_rules(one: Story) -> str:
    """Kind 15: the trade of the one who is asked for, then what it dislikes."""
    words = [fact.split() for fact in one.facts]
    trade = next(last for first, verb, *_, last in words if (first, verb) == (one.question.split()[2], "is"))
    return next(last for _, second, *_, last in words if second == trade and last != trade)


def test_answers_to_the_kinds_of_questions_follow_from_the_facts() -> None:
    for seed in range(40):
        count, names, size, path, rules, one = (generate_kind(kind, 1, (seed,))[0] for kind in (7, 8, 18, 19, 15, 1))
        assert count.answer == ("none", "one", "two", "three", "four")[len(solve_holding(count))]
        assert names.answer == (",".join(solve_holding(names)) or "nothing")
        assert size.answer == solve_size(size)
        walked = [STEPS[way] for way in path.answer.split(",")]
        assert solve_path(path) == tuple(map(sum, zip(*walked, strict=True)))
        assert rules.answer == solve_two_rules(rules)
        assert one.answer == one.facts[find_last_fact(one.facts, one.question.split()[-1])].split()[-1]


@pytest.mark.parametrize("kind", QUESTION_KINDS, ids=name_kind)
def test_every_kind_of_question_has_several_answers_and_needed_facts(kind: int) -> None:
    stories = generate_kind(kind, 200, (3,))
    answers = [one.answer for one in stories]
    assert max(map(answers.count, answers)) <= 0.65 * len(answers)
    assert all(one.support and min(one.support) >= 0 and max(one.support) < len(one.facts) for one in stories)
    assert all(len(set(one.support)) == len(one.support) for one in stories)
    assert generate_kind(kind, 200, (3,)) == stories


def test_kinds_of_questions_are_sets_of_their_own() -> None:
    sets = generate_kind_splits(MemoryData(source="kinds", kinds=(8, 17), stories=30, held_out=11))
    facts, question, answer, support = sets.load_training(0)
    assert [len(part) for part in (facts, question, answer, support)] == [60] * 4
    assert {name: len(own[0]) for name, own in sets.tests.items()} == {"8 lists": 11, "17 position": 11}
    for options in ({}, {"positions": "fixed", "writing": "gated"}, {"positions": "none", "time": False}):
        found = MemoryNetwork(MemoryModel(**options), sets.form)(facts[:7], question[:7])
        assert found.logits.shape == (7, len(sets.form.words))


def test_published_errors_have_their_published_means_and_our_names() -> None:
    for name, errors in PUBLISHED_ERRORS.items():
        assert len(errors) == 20
        assert sum(errors) / 20 == pytest.approx({"published, 1k: PE": 20.3}[name], abs=0.05)
    assert list(map(name_kind, QUESTION_KINDS)) == list(ASKED)


def test_a_preset_asks_all_kinds_of_questions() -> None:
    memory = import_task("memory")
    assert memory.configure("question-kinds", (), {"held_out": "7"}).data.source == "kinds"
    assert memory.configure(None, (), {}).data.source == "stories"
    assert memory.configure("question-kinds", (), {"data.source": "stories"}).data.source == "stories"


def test_a_kind_that_does_not_exist_is_refused() -> None:
    from regard.errors import InputError

    with pytest.raises(InputError, match=r"data\.kinds: got 21, expected numbers from 1 to 20; fix: use 1,2,3"):
        generate_kind_splits(MemoryData(source="kinds", kinds=(3, 21)))


def test_fixed_positions_are_those_of_the_paper() -> None:
    weights = weigh_positions(torch.tensor([3]), 5, 4)[0]
    for j in range(1, 4):
        for k in range(1, 5):
            assert float(weights[j - 1, k - 1]) == pytest.approx((1 - j / 3) - k / 4 * (1 - 2 * j / 3), abs=1e-6)
