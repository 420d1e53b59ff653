"""Questions that need relations or rules: kinds 4 and 15 to 20 of Weston et al. 2015, in our own words."""

from regard.tasks.memory.moving_kinds import Random, answer_yes_or_no, choose, choose_other
from regard.tasks.memory.stories import BOXES, PEOPLE, PLACES
from regard.tasks.memory.story_format import Story

STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
TRADES = ("potter", "weaver", "miller", "tanner")
DISLIKES = ("smoke", "noise", "frost", "dust")
COLORS = ("crimson", "teal", "ivory", "amber")
FIGURES = tuple(f"{color} {shape}" for color in COLORS[:3] for shape in ("cone", "cube", "ring"))
RELATIONS = {"over": (0, 1), "under": (0, -1), "right of": (1, 0), "left of": (-1, 0)}
NEEDS = {
    "hungry": ("bakery", "bread"),
    "cold": ("attic", "blanket"),
    "bored": ("tower", "book"),
    "thirsty": ("cellar", "juice"),
}


def ask_two_arguments(random: Random) -> Story:
    """Ask what lies on which side of what (kind 4)."""
    first, second, third = choose(random, PLACES, 3)
    way = choose(random, tuple(STEPS))[0]
    facts = [f"{first} lies {way} of {second}", f"{third} lies {OPPOSITE[way]} of {second}"]
    if random.integers(2):
        facts.reverse()
    near, asked = (first, way) if random.integers(2) else (third, OPPOSITE[way])
    support = [next(number for number, fact in enumerate(facts) if fact.startswith(near))]
    if random.integers(2):
        return Story(facts, f"what lies {asked} of {second}", near, support)
    return Story(facts, f"{near} lies {asked} of what", second, support)


def ask_deduction(random: Random) -> Story:
    """Ask what somebody dislikes, as all of his trade do (kind 15)."""
    dislikes = dict(zip(choose(random, TRADES, 4), choose(random, DISLIKES, 4), strict=True))
    trades = {person: str(random.choice(list(dislikes))) for person in choose(random, PEOPLE, 4)}
    facts = [f"every {trade} dislikes {what}" for trade, what in dislikes.items()]
    facts += [f"{person} is {trade}" for person, trade in trades.items()]
    facts = [facts[number] for number in random.permutation(len(facts))]
    person = choose(random, tuple(trades))[0]
    trade = trades[person]
    support = [facts.index(f"{person} is {trade}"), facts.index(f"every {trade} dislikes {dislikes[trade]}")]
    return Story(facts, f"what does {person} dislike", dislikes[trade], support)


def ask_induction(random: Random) -> Story:
    """Ask which color somebody wears, as another of his trade does (kind 16)."""
    colors = dict(zip(choose(random, TRADES, 3), choose(random, COLORS, 3), strict=True))
    people = choose(random, PEOPLE, 5)
    trades = dict(zip(people, [*colors, *random.choice(list(colors), 2)], strict=True))
    asked = people[int(random.integers(3, 5))]
    known = people[list(colors).index(trades[asked])]
    facts = [f"{person} is {trade}" for person, trade in trades.items()]
    facts += [f"{person} wears {colors[trades[person]]}" for person in people if person != asked]
    facts = [facts[number] for number in random.permutation(len(facts))]
    color = colors[trades[asked]]
    told = (f"{asked} is {trades[asked]}", f"{known} is {trades[asked]}", f"{known} wears {color}")
    return Story(facts, f"which color wears {asked}", color, [facts.index(fact) for fact in told])


def ask_position(random: Random) -> Story:
    """Ask whether one figure is on some side of another, by way of a third (kind 17)."""
    figures, ways = choose(random, FIGURES, 3), [choose(random, tuple(RELATIONS))[0] for _ in range(2)]
    facts = [f"{figures[0]} is {ways[0]} {figures[1]}", f"{figures[1]} is {ways[1]} {figures[2]}"]
    x, y = (sum(RELATIONS[way][axis] for way in ways) for axis in (0, 1))
    known = [way for way, (across, up) in RELATIONS.items() if across * x + up * y > 0]
    against = [way for way, (across, up) in RELATIONS.items() if across * x + up * y < 0]
    if not known:  # the two ways cancel out: whether it is over is not known
        return ask_position(random)
    true = bool(random.integers(2))
    asked = str(random.choice(known if true else against))
    return Story(facts, f"is {figures[0]} {asked} {figures[2]}", answer_yes_or_no(true), [0, 1])


def ask_size(random: Random) -> Story:
    """Ask whether one box fits into another (kind 18)."""
    boxes = choose(random, BOXES, 5)  # from small to large
    pairs = [(number, number + 1) for number in range(4)]
    order = [pairs[number] for number in random.permutation(4)]
    facts = [f"{boxes[small]} fits in {boxes[large]}" for small, large in order]
    small = int(random.integers(0, 3))
    large = int(random.integers(small + 1, min(small + 3, 5)))
    support = [order.index((number, number + 1)) for number in range(small, large)]
    true = bool(random.integers(2))
    ends = (boxes[small], boxes[large]) if true else (boxes[large], boxes[small])
    return Story(facts, "does {} fit in {}".format(*ends), answer_yes_or_no(true), support)


def ask_path(random: Random) -> Story:
    """Ask by which two steps one comes from one place to another (kind 19)."""
    places, ways = choose(random, PLACES, 5), [choose(random, tuple(STEPS))[0]]
    ways.append(choose_other(random, tuple(STEPS), OPPOSITE[ways[0]]))
    facts = [tell_step(random, places[0], ways[0], places[1]), tell_step(random, places[1], ways[1], places[2])]
    facts += [tell_step(random, places[3], choose(random, tuple(STEPS))[0], places[4])]
    order = [int(number) for number in random.permutation(3)]
    told, support = [facts[number] for number in order], [order.index(0), order.index(1)]
    return Story(told, f"how does one come from {places[0]} to {places[2]}", ",".join(ways), support)


def tell_step(random: Random, start: str, way: str, end: str) -> str:
    """Tell a step from one place to another, from either side."""
    if random.integers(2):
        return f"{end} lies {way} of {start}"
    return f"{start} lies {OPPOSITE[way]} of {end}"


def ask_motive(random: Random) -> Story:
    """Ask where somebody will go, why he went there, or why he took something (kind 20)."""
    facts: list[str] = []
    told: dict[str, tuple[str, int]] = {}
    for person in choose(random, PEOPLE, 2):
        need = choose(random, tuple(NEEDS))[0]
        told[person] = (need, len(facts))
        facts += [f"{person} feels {need}", f"{person} walks to {NEEDS[need][0]}", f"{person} takes {NEEDS[need][1]}"]
    person = list(told)[-1]
    need, number = told[person]
    asked = int(random.integers(3))
    facts = facts[: number + 1 + asked]
    place, thing = NEEDS[need]
    questions = (f"where will {person} go", f"why did {person} walk to {place}", f"why did {person} take {thing}")
    return Story(facts, questions[asked], need if asked else place, [number])
