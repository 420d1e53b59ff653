"""Questions without a download: facts about people, of which no test passage is ever trained on."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random

from regard.errors import wrong
from regard.tasks.data.generated import Split, split_of
from regard.tasks.reading.questions import Answer, Question

PEOPLE = (
    "Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Henry", "Ida", "Jonas", "Karin", "Leo", "Mia", "Nils",
    "Olga", "Paul",
)  # fmt: skip
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
COUNT = (4, 8)  # facts of a passage


class Facts:
    """Draws passages of facts, and asks for one of them: only who and what together tell where the answer is."""

    notes: Sequence[str] = ()
    endless = True

    def __init__(self, *, size: int, held_out: int, seed: int) -> None:
        for name, value in (("size", size), ("held_out", held_out)):
            if value < 1:
                raise wrong(name, value, "at least 1", "use 1000, say")
        self.size, self.held_out, self.seed = size, held_out, seed

    def training(self, epoch: int) -> Sequence[Question]:
        """New questions in every epoch, the same whenever that epoch is asked for."""
        return list(self.questions("train", self.size, str(epoch)))

    @cached_property
    def validation(self) -> Sequence[Question]:
        return list(self.questions("validation", self.held_out, ""))

    @cached_property
    def tests(self) -> Mapping[str, Sequence[Question]]:
        return {"test": list(self.questions("test", self.held_out, ""))}

    def questions(self, split: Split, count: int, name: str) -> Iterator[Question]:
        # A string seeds Random through sha512: the same on every machine and in every process.
        random, made = Random(f"{self.seed} {split} {name}"), 0
        while made < count:
            question = drawn(random, f"{split} {made}")
            if split_of(question.passage) == split:
                yield question
                made += 1


def drawn(random: Random, name: str) -> Question:
    """A passage of facts about a few people, and a question about one of them."""
    people = random.sample(PEOPLE, k=3)
    pairs = [(who, kind) for who in people for kind in KINDS]
    facts = [(who, kind, random.choice(kind[2])) for who, kind in random.sample(pairs, k=random.randint(*COUNT))]
    who, kind, what = random.choice(facts)
    wanted = kind[0].format(who=who, what=what)
    said = [fact[0].format(who=name, what=value) for name, fact, value in facts]
    said += random.sample(FILLER, k=random.randint(0, 2))
    random.shuffle(said)
    passage = " ".join(said)
    begin = passage.index(wanted) + wanted.index(what, kind[0].index("{what}") - len("{who}") + len(who))
    return Question(kind[1].format(who=who), passage, (Answer(what, begin),), name)
