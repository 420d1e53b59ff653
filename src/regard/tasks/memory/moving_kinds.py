"""People who move and carry things: kinds 1 to 3 and 5 to 14 of the questions of Weston et al. 2015."""

from typing import NamedTuple

import numpy as np

from regard.tasks.memory.stories import PEOPLE, PLACES, THINGS, VERBS
from regard.tasks.memory.story_format import Story

PLURALS = ("walk to", "hurry to", "return to")
PRONOUNS = dict(zip(PEOPLE, ("she", "he", "he", "she", "he", "she"), strict=True))
NUMBERS = ("none", "one", "two", "three", "four")
TIMES = ("yesterday", "this morning", "this noon", "this evening")
Random = np.random.Generator


class Move(NamedTuple):
    """Somebody went somewhere, by the fact of this number."""

    fact: int
    place: str


def choose(random: Random, names: tuple[str, ...], count: int = 1) -> list[str]:
    """Return some of the names, each once."""
    return [str(name) for name in random.permutation(names)[:count]]


def choose_other(random: Random, names: tuple[str, ...], *known: str) -> str:
    """Return a name that is not one of those."""
    return str(random.choice([name for name in names if name not in known]))


def answer_yes_or_no(true: bool) -> str:
    """Return yes or no."""
    return "yes" if true else "no"


def wander(random: Random, facts: int = 6) -> tuple[list[str], dict[str, Move]]:
    """Return facts of people who go to places, and where each was last seen."""
    told: list[str] = []
    last: dict[str, Move] = {}
    people = choose(random, PEOPLE, 4)
    for number in range(random.integers(2, facts + 1)):
        person = str(random.choice(people))
        place = choose_other(random, PLACES, last[person].place if person in last else "")
        told.append(f"{person} {random.choice(VERBS)} {place}")
        last[person] = Move(number, place)
    return told, last


def ask_one_fact(random: Random) -> Story:
    """Ask where somebody is (kind 1)."""
    facts, last = wander(random)
    person = str(random.choice(list(last)))
    return Story(facts, f"where is {person}", last[person].place, [last[person].fact])


def ask_two_facts(random: Random) -> Story:
    """Ask where a thing is that somebody took along, or left somewhere (kind 2)."""
    facts, last = wander(random, 4)
    person, thing = str(random.choice(list(last))), choose(random, THINGS)[0]
    facts.append(f"{person} takes {thing}")
    support, place = [len(facts) - 1, last[person].fact], last[person].place
    for _ in range(random.integers(0, 3)):
        mover = str(random.choice(list(last)))
        goal = choose_other(random, PLACES, place)
        facts.append(f"{mover} {random.choice(VERBS)} {goal}")
        if mover == person:
            support, place = [support[0], len(facts) - 1], goal
    if random.random() < 0.3:
        facts.append(f"{person} leaves {thing}")
        facts.append(f"{person} {random.choice(VERBS)} {choose_other(random, PLACES, place)}")
        support[0] = len(facts) - 2
    return Story(facts, f"where is {thing}", place, support)


def ask_three_facts(random: Random) -> Story:
    """Ask where a thing was before it was where it is (kind 3)."""
    person, other = choose(random, PEOPLE, 2)
    thing, (first, second) = choose(random, THINGS)[0], choose(random, PLACES, 2)
    facts = [f"{person} {random.choice(VERBS)} {first}", f"{person} takes {thing}"]
    facts += [f"{person} {random.choice(VERBS)} {second}"]
    support = [1, 0, 2]
    for _ in range(random.integers(1, 4)):
        place = int(random.integers(0, len(facts) + 1))
        facts.insert(place, f"{other} {random.choice(VERBS)} {random.choice(PLACES)}")
        support = [number + (number >= place) for number in support]
    return Story(facts, f"where was {thing} before {second}", first, support)


def ask_three_arguments(random: Random) -> Story:
    """Ask who gave what to whom (kind 5)."""
    facts: list[str] = []
    told: list[tuple[str, str, str]] = []
    for _ in range(random.integers(2, 6)):
        giver, taker = choose(random, PEOPLE, 2)
        told.append((giver, choose_other(random, THINGS, *(one[1] for one in told)), taker))
        facts.append("{} hands {} to {}".format(*told[-1]))
    # The last time that the two met: what was handed over earlier is another answer.
    giver, thing, taker = told[-1 - int(random.integers(0, min(2, len(told))))]
    number = facts.index(f"{giver} hands {thing} to {taker}")
    asked = int(random.integers(2))
    if asked == 0:
        return Story(facts, f"who handed {thing} over", giver, [number])
    return Story(facts, f"who received {thing}", taker, [number])


def ask_yes_or_no(random: Random) -> Story:
    """Ask whether somebody is somewhere (kind 6)."""
    facts, last = wander(random)
    person = str(random.choice(list(last)))
    move, true = last[person], bool(random.integers(2))
    place = move.place if true else choose_other(random, PLACES, move.place)
    return Story(facts, f"is {person} at {place}", answer_yes_or_no(true), [move.fact])


def carry(random: Random) -> tuple[list[str], str, list[str], list[int]]:
    """Return facts of people who take and leave things, one of them, what that one has, and the facts about it."""
    person, other = choose(random, PEOPLE, 2)
    facts, held, support = [], [], []
    for thing in choose(random, THINGS, int(random.integers(2, 5))):
        owner = person if random.random() < 0.7 else other
        facts.append(f"{owner} takes {thing}")
        if owner == person:
            held.append(thing)
            support.append(len(facts) - 1)
        if held and random.random() < 0.35:
            lost = held.pop(int(random.integers(len(held))))
            facts.append(f"{person} leaves {lost}")
            support.append(len(facts) - 1)
    return facts, person, held, support or [0]


def ask_count(random: Random) -> Story:
    """Ask how many things somebody has (kind 7)."""
    facts, person, held, support = carry(random)
    return Story(facts, f"how many things has {person}", NUMBERS[len(held)], support)


def ask_list(random: Random) -> Story:
    """Ask which things somebody has; the answer names all (kind 8)."""
    facts, person, held, support = carry(random)
    return Story(facts, f"what has {person}", ",".join(sorted(held)) or "nothing", support)


def ask_negation(random: Random) -> Story:
    """Ask whether somebody is where he was said to be, or not to be (kind 9)."""
    facts, last = [], {}
    for number in range(random.integers(2, 7)):
        person, place, there = str(random.choice(PEOPLE[:4])), str(random.choice(PLACES)), random.random() < 0.75
        facts.append(f"{person} {'waits' if there else 'never waits'} at {place}")
        last[person] = (number, place, there)
    person = str(random.choice(list(last)))
    number, place, there = last[person]
    if there and random.random() < 0.33:
        return Story(facts, f"is {person} at {choose_other(random, PLACES, place)}", "no", [number])
    return Story(facts, f"is {person} at {place}", answer_yes_or_no(there), [number])


def ask_indefinite(random: Random) -> Story:
    """Ask whether somebody is where he may be (kind 10)."""
    facts, last = [], {}
    for number in range(random.integers(2, 7)):
        person, places = str(random.choice(PEOPLE[:4])), choose(random, PLACES, 2)
        sure = random.random() < 0.5
        facts.append(f"{person} waits at {places[0]}" if sure else f"{person} waits at {places[0]} or {places[1]}")
        last[person] = (number, places[: 1 if sure else 2])
    person = str(random.choice(list(last)))
    number, places = last[person]
    if random.random() < 0.3:
        return Story(facts, f"is {person} at {choose_other(random, PLACES, *places)}", "no", [number])
    answer = "yes" if len(places) == 1 else "maybe"
    return Story(facts, f"is {person} at {random.choice(places)}", answer, [number])


def follow(random: Random, *, together: bool, named: bool) -> Story:
    """Return a story of people who go on to another place, alone or in pairs, by name or by a pronoun."""
    facts, where = [], {}
    for _ in range(random.integers(1, 4)):
        people, places = choose(random, PEOPLE, 2 if together else 1), choose(random, PLACES, 2)
        number = int(random.integers(3))
        verbs = PLURALS if together else VERBS
        facts.append(f"{' and '.join(people)} {verbs[number]} {places[0]}")
        support = [len(facts) - 1]
        if not named:
            who = "they" if together else PRONOUNS[people[0]]
            facts.append(f"afterwards {who} {verbs[int(random.integers(3))]} {places[1]}")
            support = [len(facts) - 1, len(facts) - 2]
        where.update(dict.fromkeys(people, (places[0] if named else places[1], support)))
    person = str(random.choice(list(where)))
    return Story(facts, f"where is {person}", *where[person])


def ask_pronoun(random: Random) -> Story:
    """Ask where somebody is for whom a pronoun stands (kind 11)."""
    return follow(random, together=False, named=False)


def ask_pair(random: Random) -> Story:
    """Ask where one of two people is who went together (kind 12)."""
    return follow(random, together=True, named=True)


def ask_pair_by_pronoun(random: Random) -> Story:
    """Ask where one of two people is for whom a pronoun stands (kind 13)."""
    return follow(random, together=True, named=False)


def ask_time(random: Random) -> Story:
    """Ask where somebody was before, if facts are not told in the order of time (kind 14)."""
    facts, paths = [], {person: choose(random, PLACES, 3) for person in choose(random, PEOPLE, 2)}
    order = [(person, hour) for person in paths for hour in range(3)]
    told = [order[number] for number in random.permutation(len(order))]
    facts = [f"{TIMES[hour]} {person} went to {paths[person][hour]}" for person, hour in told]
    person, hour = choose(random, tuple(paths))[0], int(random.integers(1, 3))
    support = [told.index((person, hour)), told.index((person, hour - 1))]
    return Story(facts, f"where was {person} before {paths[person][hour]}", paths[person][hour - 1], support)
