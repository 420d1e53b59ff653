"""Questions without a download: facts about people, of which no test passage is ever trained on."""

from collections.abc import Iterator, Sequence
from random import Random

from regard.tasks.data.generated_data import GeneratedData, Split, assign_split
from regard.tasks.reading.questions import Answer, PassageQuestion

# Names are made of these, one of each: so many that nobody is known, and who is asked for is told by comparing.
SYLLABLES = (
    ("Ba", "De", "Fi", "Go", "Hu", "Ja", "Ke", "Li", "Mo", "Nu", "Pa", "Re", "Si", "To", "Vu", "Za"),
    ("la", "me", "ni", "ro", "su", "va", "ke", "di", "go", "tu"),
    ("ba", "de", "fi", "ko", "lu", "ma", "ne", "ri", "so", "tu"),
    ("b", "k", "l", "m", "n", "r", "s", "t", "x", "z"),
)
PLACES = ("Oslo", "Lima", "Cairo", "Delhi", "Paris", "Quito", "Tokyo", "Accra", "Bern", "Hanoi", "Riga", "Sydney")
WORK = ("a baker", "a judge", "a pilot", "a nurse", "a mason", "a clerk", "a tailor", "a singer", "a carpenter")
PETS = ("a grey cat", "a small dog", "an old parrot", "a white horse", "a brown goat", "a black rabbit")
DRINKS = ("green tea", "black coffee", "cold milk", "apple juice", "hot chocolate", "plain water")
FILLER = ("It rained all day.", "The train was late.", "Nobody knew why.", "The market was closed.")
# How a fact is said, how it is asked for, and what it may be.
KINDS = (
    ("{who} lives in {what}.", "Where does {who} live?", PLACES),
    ("{who} was born in {what}.", "Where was {who} born?", PLACES),
    ("{who} works as {what}.", "What is the profession of {who}?", WORK),
    ("{who} owns {what}.", "Which animal does {who} own?", PETS),
    ("{who} likes to drink {what}.", "What does {who} like to drink?", DRINKS),
)
PEOPLE = 4  # of a passage
OTHER = (1, 3)  # facts of another kind than that which is asked for


class FactsDataset(GeneratedData[PassageQuestion]):
    """Draws passages of facts about a few people, and asks about one of them.

    The question names all of them and says who is not meant: a reader has to find each name of the passage in the
    question and see what is said of it there. An average of the question blurs the names.
    """

    def draw_items(self, split: Split, count: int, random: Random) -> Iterator[PassageQuestion]:
        made = 0
        while made < count:
            question = draw_question(random, f"{split} {made}")
            if assign_split(question.passage) == split:
                yield question
                made += 1


def draw_name(random: Random) -> str:
    """A name.

    >>> draw_name(Random(1))
    'Hutuden'
    """
    return "".join(map(random.choice, SYLLABLES))


def draw_people(random: Random) -> list[str]:
    """Some people, no two of the same name."""
    names: set[str] = set()
    while len(names) < PEOPLE:
        names.add(draw_name(random))
    return random.sample(sorted(names), k=PEOPLE)


def draw_question(random: Random, name: str) -> PassageQuestion:
    """A passage of facts, and a question that all people have an answer to."""
    people, asked = draw_people(random), random.choice(KINDS)
    whats = random.sample(asked[2], k=PEOPLE)
    said = [asked[0].format(who=who, what=what) for who, what in zip(people, whats, strict=True)]
    wanted, what = said[0], whats[0]
    for kind in random.sample([one for one in KINDS if one is not asked], k=random.randint(*OTHER)):
        said.append(kind[0].format(who=random.choice(people), what=random.choice(kind[2])))
    said += random.sample(FILLER, k=random.randint(0, 2))
    random.shuffle(said)
    passage = " ".join(said)
    answer = Answer(what, passage.index(wanted) + wanted.rindex(what))
    return PassageQuestion(phrase_question(asked[1], people, random), passage, (answer,), name)


def phrase_question(question: str, people: Sequence[str], random: Random) -> str:
    """The question about the first of some people, with who is not meant before and behind it.

    >>> phrase_question("Where does {who} live?", ["Anna", "Ben", "Clara"], Random(1))
    'Not Ben. Not Clara. Where does Anna live?'
    """
    parts = [question.format(who=people[0]), *(f"Not {who}." for who in people[1:])]
    random.shuffle(parts)
    return " ".join(parts)
