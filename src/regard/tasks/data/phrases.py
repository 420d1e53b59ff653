"""English sentences and their Chinese translations, by a small grammar of our own.

Both languages put the same facts in another order: time and place stand before the verb in Chinese, and a number has a
measure word, which depends on the thing.
"""

from random import Random
from typing import NamedTuple

from regard.tasks.data.generated_data import GeneratedPairs
from regard.tasks.data.pairs import SentencePair

PHRASES = "phrases-zh"
TIMES = {
    "": "",
    "yesterday": "昨天",
    "last week": "上周",
    "this morning": "今天早上",
    "on Monday": "星期一",
    "two years ago": "两年前",
}
PEOPLE = {
    "my sister": "我姐姐",
    "the teacher": "老师",
    "our neighbor": "我们的邻居",
    "his friend": "他的朋友",
    "an old man": "一位老人",
    "the doctor": "医生",
    "a student": "一个学生",
    "her uncle": "她叔叔",
}
VERBS = {"bought": "买了", "found": "找到了", "sold": "卖了", "saw": "看见了", "lost": "丢了", "painted": "画了"}
PLACES = {
    "": "",
    "in the market": "在市场",
    "at the station": "在车站",
    "at school": "在学校",
    "in the park": "在公园里",
    "at home": "在家里",
    "in the library": "在图书馆",
}
NUMBERS = {"a": "一", "two": "两", "three": "三", "four": "四", "five": "五", "six": "六", "ten": "十"}
COLORS = {"": "", "red": "红色的", "white": "白色的", "black": "黑色的", "yellow": "黄色的", "blue": "蓝色的"}


class Thing(NamedTuple):
    """A thing in both languages: one and several in English, measure word and noun in Chinese."""

    one: str
    several: str
    measure: str
    chinese: str


THINGS = (
    Thing("book", "books", "本", "书"),
    Thing("cat", "cats", "只", "猫"),
    Thing("hat", "hats", "顶", "帽子"),
    Thing("horse", "horses", "匹", "马"),
    Thing("chair", "chairs", "把", "椅子"),
    Thing("shirt", "shirts", "件", "衬衫"),
    Thing("flower", "flowers", "朵", "花"),
    Thing("cup", "cups", "个", "杯子"),
    Thing("fish", "fish", "条", "鱼"),
    Thing("car", "cars", "辆", "汽车"),
)


class Phrase(NamedTuple):
    """The content of both sides of a pair, in English words."""

    time: str
    person: str
    verb: str
    place: str
    number: str
    color: str
    thing: Thing


class Phrases(GeneratedPairs[Phrase]):
    """Somebody did something to some things, somewhere, at some time."""

    def draw_fact(self, random: Random) -> Phrase:
        choices = (TIMES, PEOPLE, VERBS, PLACES, NUMBERS, COLORS)
        time, person, verb, place, number, color = (random.choice(list(choice)) for choice in choices)
        return Phrase(time, person, verb, place, number, color, random.choice(THINGS))

    def write_pair(self, fact: Phrase, random: Random) -> SentencePair:
        return SentencePair(write_english(fact), write_chinese(fact))


def write_english(phrase: Phrase) -> str:
    """Return the English sentence.

    >>> write_english(Phrase("last week", "my sister", "bought", "in the market", "three", "red", THINGS[0]))
    'Last week my sister bought three red books in the market.'
    """
    thing = phrase.thing.one if phrase.number == "a" else phrase.thing.several
    parts = (phrase.time, phrase.person, phrase.verb, phrase.number, phrase.color, thing, phrase.place)
    text = " ".join(filter(None, parts))
    return f"{text[0].upper()}{text[1:]}."


def write_chinese(phrase: Phrase) -> str:
    """Return the Chinese sentence.

    >>> write_chinese(Phrase("last week", "my sister", "bought", "in the market", "three", "red", THINGS[0]))
    '我姐姐上周在市场买了三本红色的书。'
    """
    action = f"{PEOPLE[phrase.person]}{TIMES[phrase.time]}{PLACES[phrase.place]}{VERBS[phrase.verb]}"
    return f"{action}{NUMBERS[phrase.number]}{phrase.thing.measure}{COLORS[phrase.color]}{phrase.thing.chinese}。"
