"""Generated questions: facts about a few people."""

from collections.abc import Callable, Sequence
from random import Random

from regard.tasks.data.generated_data import GeneratedData
from regard.tasks.reading.fact_language import ENGLISH, PEOPLE, FactLanguage
from regard.tasks.reading.questions import Answer, PassageQuestion

OTHER = (1, 3)  # facts of another kind than that which is asked for


class FactsDataset(GeneratedData[PassageQuestion]):
    """Passages of facts about a few people, and questions about one of them.

    The question names all of them and says who is not meant: a model has to find each name of the passage in the
    question and see whether it is meant. An average of the question blurs the names.
    """

    def __init__(self, size: int, held_out: int, seed: int, language: FactLanguage = ENGLISH) -> None:
        super().__init__(size, held_out, seed)
        self.language = language

    def draw(self, random: Random) -> tuple[str, Callable[[str], PassageQuestion]]:
        question = draw_question(random, "", self.language)
        return question.passage, lambda name: question._replace(name=name)


def draw_name(random: Random, language: FactLanguage = ENGLISH) -> str:
    """Return a name.

    >>> draw_name(Random(1))
    'Hutuden'
    """
    return "".join(map(random.choice, language.syllables))


def draw_people(random: Random, language: FactLanguage) -> list[str]:
    """Return some people, no two of the same name."""
    names: set[str] = set()
    while len(names) < PEOPLE:
        names.add(draw_name(random, language))
    return random.sample(sorted(names), k=PEOPLE)


def draw_question(random: Random, name: str, language: FactLanguage) -> PassageQuestion:
    """Return a passage of facts with a question to which every person has an answer."""
    people, asked = draw_people(random, language), random.choice(language.kinds)
    whats = random.sample(asked.choices, k=PEOPLE)
    sentences = [asked.sentence.format(who=who, what=what) for who, what in zip(people, whats, strict=True)]
    wanted, what = sentences[0], whats[0]
    others = [kind for kind in language.kinds if kind is not asked]
    for kind in random.sample(others, k=random.randint(*OTHER)):
        sentences.append(kind.sentence.format(who=random.choice(people), what=random.choice(kind.choices)))
    sentences += random.sample(language.filler, k=random.randint(0, 2))
    random.shuffle(sentences)
    passage = language.gap.join(sentences)
    answer = Answer(what, passage.index(wanted) + wanted.rindex(what))
    text = phrase_question(asked.question, people, random, language)
    return PassageQuestion(text, passage, (answer,), name)


def phrase_question(question: str, people: Sequence[str], random: Random, language: FactLanguage = ENGLISH) -> str:
    """Return the question about the first person, with those who are not meant before and after it.

    >>> phrase_question("Where does {who} live?", ["Anna", "Ben", "Clara"], Random(1))
    'Not Ben. Not Clara. Where does Anna live?'
    """
    parts = [question.format(who=people[0]), *(language.other.format(who=who) for who in people[1:])]
    random.shuffle(parts)
    return language.gap.join(parts)
