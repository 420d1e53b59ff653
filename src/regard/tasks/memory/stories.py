"""Little stories in our own words, and questions whose answers need one, two or three of their facts."""

from collections.abc import Sequence

import numpy as np

from regard.tasks.memory.config import MemoryData
from regard.tasks.memory.story_format import Story, StoryFormat, StorySplits
from regard.tasks.tensor_task import Tensors

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
LONGEST = 4  # words of a fact or a question
KINDS = ("one fact", "two facts", "three facts")


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


def count_most_facts(data: MemoryData) -> int:
    """Return the largest number of facts of a story."""
    return data.people * (data.moves + 2) - 3


def generate_stories(data: MemoryData, count: int, seed: Sequence[int], kind: int | None = None) -> list[Story]:
    """Return `count` stories of one kind; of all kinds in turn, if none is named."""
    random = np.random.default_rng([data.seed, *seed])
    return [generate_story(data, number % len(KINDS) if kind is None else kind, random) for number in range(count)]


def choose_format(data: MemoryData) -> StoryFormat:
    """Return the words and the sizes of these stories."""
    return StoryFormat(WORDS, LONGEST, count_most_facts(data), len(KINDS))


def generate_story_splits(data: MemoryData) -> StorySplits:
    """Generate splits: new stories in each epoch, and tests by the number of facts that are needed."""
    form = choose_format(data)
    tests = {
        name: form.to_tensors(generate_stories(data, data.held_out, (2, place), place))
        for place, name in enumerate(KINDS)
    }
    validation = form.to_tensors(generate_stories(data, data.held_out, (1,)))
    example = generate_stories(data, 3, (2, 9))[-1]

    def load(epoch: int) -> Tensors:
        return form.to_tensors(generate_stories(data, data.items, (0, epoch)))

    return StorySplits(load, validation, tests, endless=True, form=form, example=example)
