"""The words of generated facts, in English and in Chinese."""

from typing import NamedTuple

PEOPLE = 4  # of a passage


class FactKind(NamedTuple):
    """A sentence, the question about it, and what may be filled in."""

    sentence: str
    question: str
    choices: tuple[str, ...]


class FactLanguage(NamedTuple):
    """The words of a language. A name has one of each of the `syllables`."""

    syllables: tuple[tuple[str, ...], ...]
    kinds: tuple[FactKind, ...]
    filler: tuple[str, ...]
    other: str  # says who is not meant
    gap: str  # between two sentences


PLACES = ("Oslo", "Lima", "Cairo", "Delhi", "Paris", "Quito", "Tokyo", "Accra", "Bern", "Hanoi", "Riga", "Sydney")
WORK = ("a baker", "a judge", "a pilot", "a nurse", "a mason", "a clerk", "a tailor", "a singer", "a carpenter")
PETS = ("a grey cat", "a small dog", "an old parrot", "a white horse", "a brown goat", "a black rabbit")
DRINKS = ("green tea", "black coffee", "cold milk", "apple juice", "hot chocolate", "plain water")
CITIES = ("北京", "上海", "广州", "成都", "西安", "南京", "杭州", "武汉", "天津", "重庆", "苏州", "昆明")

ENGLISH = FactLanguage(
    # There are so many names that a model cannot know them: it has to compare them.
    syllables=(
        ("Ba", "De", "Fi", "Go", "Hu", "Ja", "Ke", "Li", "Mo", "Nu", "Pa", "Re", "Si", "To", "Vu", "Za"),
        ("la", "me", "ni", "ro", "su", "va", "ke", "di", "go", "tu"),
        ("ba", "de", "fi", "ko", "lu", "ma", "ne", "ri", "so", "tu"),
        ("b", "k", "l", "m", "n", "r", "s", "t", "x", "z"),
    ),
    kinds=(
        FactKind("{who} lives in {what}.", "Where does {who} live?", PLACES),
        FactKind("{who} was born in {what}.", "Where was {who} born?", PLACES),
        FactKind("{who} works as {what}.", "What is the profession of {who}?", WORK),
        FactKind("{who} owns {what}.", "Which animal does {who} own?", PETS),
        FactKind("{who} likes to drink {what}.", "What does {who} like to drink?", DRINKS),
    ),
    filler=("It rained all day.", "The train was late.", "Nobody knew why.", "The market was closed."),
    other="Not {who}.",
    gap=" ",
)
CHINESE = FactLanguage(
    syllables=(
        tuple("王李张刘陈杨黄赵周吴徐孙马朱胡林"),
        tuple("家文志晓思雨子海建立明若天春秋云"),
        tuple("华伟强敏静丽军杰娟涛超平刚桂英宁"),
    ),
    kinds=(
        FactKind("{who}住在{what}。", "{who}住在哪里？", CITIES),
        FactKind("{who}出生在{what}。", "{who}出生在哪里？", CITIES),
        FactKind(
            "{who}的工作是{what}。",
            "{who}的工作是什么？",
            ("面包师", "法官", "飞行员", "护士", "石匠", "店员", "裁缝", "歌手", "木匠"),
        ),
        FactKind(
            "{who}养了{what}。",
            "{who}养了什么动物？",
            ("一只灰猫", "一只小狗", "一只老鹦鹉", "一匹白马", "一头黄牛", "一只黑兔"),
        ),
        FactKind(
            "{who}爱喝{what}。",
            "{who}爱喝什么？",
            ("绿茶", "黑咖啡", "冰牛奶", "苹果汁", "热巧克力", "白开水"),
        ),
    ),
    filler=("雨下了一整天。", "火车晚点了。", "没有人知道原因。", "市场关门了。"),
    other="不问{who}。",
    gap="",
)
LANGUAGES = {"facts": ENGLISH, "facts-zh": CHINESE}
