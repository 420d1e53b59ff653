"""Little stories in our own words, and questions whose answers need one, two or three of their facts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from regard.errors import wrong
from regard.tasks.data import pad
from regard.tasks.data.words import normalize_words
from regard.tasks.memory.config import MemoryData
from regard.tasks.tensor_task import DataSplits, Tensors

PEOPLE = ("anna", "boris", "chen", "dalia", "emil", "farah")
BOXES = ("crate", "basket", "suitcase", "barrel", "trunk", "jar")
THINGS = ("pearl", "letter", "compass", "lantern", "flute", "coin")
PLACES = ("harbor", "attic", "orchard", "bakery", "tower", "meadow", "station", "cellar")
VERBS = ("walks to", "hurries to", "returns to")
WORDS = (
    "",
    *PEOPLE,
    *BOXES,
    *THINGS,
    *PLACES,
    "walks",
    "hurries",
    "returns",
    "to",
    "goes",
    "with",
    "lies",
    "in",
    "where",
    "is",
)
WORD_IDS = {word: number for number, word in enumerate(WORDS)}
LONGEST = 4  # words of a fact or a question
KINDS = ("one fact", "two facts", "three facts")


class Story(NamedTuple):
    """Facts in their order, a question, its answer, and the facts that it follows from, first things first."""

    facts: list[str]
    question: str
    answer: str
    support: list[int]


def generate_story(data: MemoryData, kind: int, random: np.random.Generator) -> Story:
    """Generate a story of people who carry boxes that hold things, and a question where one of these is."""
    people, boxes, things = (random.permutation(names)[: data.people] for names in (PEOPLE, BOXES, THINGS))
    walks = [place for place in range(data.people) for _ in range(random.integers(1, data.moves + 1))]
    events = [("walk", place) for place in walks]
    # Somebody has no box and some box holds nothing: otherwise a place could be found by ruling out all others.
    events += [("carry", place) for place in range(data.people - 1)] + [
        ("hold", place) for place in range(data.people - 2)
    ]
    order = [events[number] for number in random.permutation(len(events))]
    asked = int(random.integers(data.people - kind))
    facts, where, found = [], "", {"walk": 0, "carry": 0, "hold": 0}
    for number, (what, place) in enumerate(order):
        goal = str(random.choice(PLACES))
        walk = f"{people[place]} {random.choice(VERBS)} {goal}"
        fact = {"walk": walk, "carry": f"{boxes[place]} goes with {people[place]}"}.get(what)
        facts.append(fact or f"{things[place]} lies in {boxes[place]}")
        if place == asked:
            found[what], where = number, goal if what == "walk" else where
    names = (people[asked], boxes[asked], things[asked])
    support = [found["walk"], found["carry"], found["hold"]][: kind + 1][::-1]
    return Story(facts, f"where is {names[kind]}", where, support)


def to_tensors(stories: Sequence[Story], data: MemoryData) -> Tensors:
    """Return facts as token ids, the latest first; the question; the answer; and the supporting facts, −1 for none."""
    most = count_most_facts(data)
    facts = torch.zeros(len(stories), most, LONGEST, dtype=torch.int64)
    support = torch.full((len(stories), len(KINDS)), -1)
    for row, one in enumerate(stories):
        facts[row, : len(one.facts)] = pad([encode_sentence(fact) for fact in one.facts[::-1]], 0)
        support[row, : len(one.support)] = torch.tensor([len(one.facts) - 1 - place for place in one.support])
    questions = pad([encode_sentence(one.question) for one in stories], 0)
    return facts, questions, torch.tensor([WORD_IDS[one.answer] for one in stories]), support


def count_most_facts(data: MemoryData) -> int:
    """Return the largest number of facts of a story."""
    return data.people * (data.moves + 2) - 3


def encode_sentence(sentence: str) -> list[int]:
    """Return the word ids of a sentence, padded to the length of the longest."""
    words = normalize_words(sentence).split()
    unknown = next((word for word in words if word not in WORD_IDS), None)
    if unknown is not None:
        raise wrong("item", repr(unknown), f"words of the stories: {', '.join(WORDS[1:])}", "write one of these")
    if not 1 <= len(words) <= LONGEST:
        raise wrong("item", repr(sentence), f"1 to {LONGEST} words in a sentence", "write 'anna walks to harbor', say")
    return [WORD_IDS[word] for word in words] + [0] * (LONGEST - len(words))


def generate_stories(data: MemoryData, count: int, seed: Sequence[int], kind: int | None = None) -> list[Story]:
    """Return `count` stories of one kind; of all kinds in turn, if none is named."""
    random = np.random.default_rng([data.seed, *seed])
    return [generate_story(data, number % len(KINDS) if kind is None else kind, random) for number in range(count)]


def generate_splits(data: MemoryData) -> DataSplits:
    """Generate splits: new stories in each epoch, and tests by the number of facts that are needed."""
    tests = {
        name: to_tensors(generate_stories(data, data.held_out, (2, place), place), data)
        for place, name in enumerate(KINDS)
    }
    validation = to_tensors(generate_stories(data, data.held_out, (1,)), data)
    return DataSplits(
        lambda epoch: to_tensors(generate_stories(data, data.items, (0, epoch)), data), validation, tests, endless=True
    )


def parse_story(text: str, data: MemoryData) -> tuple[Story, Tensors]:
    """Parse a story: facts with a full stop behind each, then a question."""
    sentences = [part.strip() for part in text.replace("?", "?.").split(".") if part.strip()]
    if len(sentences) < 2 or not sentences[-1].endswith("?"):
        fix = "write 'anna walks to harbor. where is anna?', say"
        raise wrong("item", repr(text), "facts, each with a full stop, and a question", fix)
    most = count_most_facts(data)
    if len(sentences) - 1 > most:
        raise wrong("item", f"{len(sentences) - 1} facts", f"at most {most}, as in training", "leave some out")
    one = Story(sentences[:-1], sentences[-1].rstrip("?"), "", [])
    return one, to_tensors([one._replace(answer=PLACES[0])], data)
