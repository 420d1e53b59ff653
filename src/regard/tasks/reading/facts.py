"""Generated questions: facts about a few people."""

from collections.abc import Callable, Sequence
from random import Random

from regard.tasks.data.generated_data import GeneratedData
from regard.tasks.reading.questions import Answer, PassageQuestion

# A name has one of each. There are so many that a model cannot know them: it has to compare names.
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
# A sentence, the question about it, and what may be filled in.
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
    """Passages of facts about a few people, and questions about one of them.

    The question names all of them and says who is not meant: a model has to find each name of the passage in the
    question and see whether it is meant. An average of the question blurs the names.
    """

    def draw(self, random: Random) -> tuple[str, Callable[[str], PassageQuestion]]:
        question = draw_question(random, "")
        return question.passage, lambda name: question._replace(name=name)


def draw_name(random: Random) -> str:
    """Return a name.

    >>> draw_name(Random(1))
    'Hutuden'
    """
    return "".join(map(random.choice, SYLLABLES))


def draw_people(random: Random) -> list[str]:
    """Return some people, no two of the same name."""
    names: set[str] = set()
    while len(names) < PEOPLE:
        names.add(draw_name(random))
    return random.sample(sorted(names), k=PEOPLE)


def draw_question(random: Random, name: str) -> PassageQuestion:
    """Return a passage of facts with a question to which every person has an answer."""
    people, asked = draw_people(random), random.choice(KINDS)
    whats = random.sample(asked[2], k=PEOPLE)
    sentences = [asked[0].format(who=who, what=what) for who, what in zip(people, whats, strict=True)]
    wanted, what = sentences[0], whats[0]
    for kind in random.sample([kind for kind in KINDS if kind is not asked], k=random.randint(*OTHER)):
        sentences.append(kind[0].format(who=random.choice(people), what=random.choice(kind[2])))
    sentences += random.sample(FILLER, k=random.randint(0, 2))
    random.shuffle(sentences)
    passage = " ".join(sentences)
    answer = Answer(what, passage.index(wanted) + wanted.rindex(what))
    return PassageQuestion(phrase_question(asked[1], people, random), passage, (answer,), name)


def phrase_question(question: str, people: Sequence[str], random: Random) -> str:
    """Return the question about the first person, with those who are not meant before and after it.

    >>> phrase_question("Where does {who} live?", ["Anna", "Ben", "Clara"], Random(1))
    'Not Ben. Not Clara. Where does Anna live?'
    """
    parts = [question.format(who=people[0]), *(f"Not {who}." for who in people[1:])]
    random.shuffle(parts)
    return " ".join(parts)
