"""Sentences about scenes, by grammars of our own: captions, questions and answers, in English and in Chinese.

A group of shapes is described by its number, color and shape, and by its side or its direction from the other: both
descriptions are right.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from regard.tasks.images.scenes import COLORS, SHAPES, ShapeGroup

SCENES = "scenes"
QUESTIONS = 5  # about a scene, at most


class SceneLanguage(NamedTuple):
    """The words of a language: those of `ShapeGroup` by their English names, and sentences with gaps."""

    numbers: tuple[str, ...]
    colors: Mapping[str, str]
    shapes: Mapping[str, str]
    sides: Mapping[str, str]  # as an answer
    describe: Callable[["SceneLanguage", ShapeGroup], str]  # number, color and shape
    alone: Mapping[str, str]  # a caption of one group, by its side
    beside: Mapping[str, str]  # a caption of two groups, by the side of the first
    ask_color: str
    ask_shape: str
    ask_side: str
    ask_number: str
    ask_presence: str
    presence: tuple[str, str]  # the answers if there is one, and if there is none


def name_group_in_english(language: SceneLanguage, group: ShapeGroup) -> str:
    """Return number, color and shape: `two red circles`."""
    number = "a" if group.number == 1 else language.numbers[group.number - 1]
    return f"{number} {group.color} {group.shape}{'s' if group.number > 1 else ''}"


def name_group_in_chinese(language: SceneLanguage, group: ShapeGroup) -> str:
    """Return number, color and shape: `两个红色的圆`."""
    number = language.numbers[group.number - 1]
    return f"{number}{language.colors[group.color]}的{language.shapes[group.shape]}"


ENGLISH = SceneLanguage(
    numbers=("one", "two", "three", "four", "five", "six"),
    colors={name: name for name in COLORS},
    shapes={name: name for name in SHAPES},
    sides={"left": "left", "right": "right", "top": "top", "bottom": "bottom"},
    describe=name_group_in_english,
    alone={
        "left": "{0} on the left",
        "right": "{0} on the right",
        "top": "{0} at the top",
        "bottom": "{0} at the bottom",
    },
    beside={"left": "{0} left of {1}", "right": "{0} right of {1}", "top": "{0} above {1}", "bottom": "{0} below {1}"},
    ask_color="what color are the {shape}s?",
    ask_shape="what shape is {color}?",
    ask_side="where are the {color} {shape}s?",
    ask_number="how many {shape}s are there?",
    ask_presence="is there a {color} {shape}?",
    presence=("yes", "no"),
)
CHINESE = SceneLanguage(
    numbers=("一个", "两个", "三个", "四个", "五个", "六个"),
    colors={"red": "红色", "green": "绿色", "blue": "蓝色", "yellow": "黄色", "purple": "紫色"},
    shapes={"circle": "圆", "square": "正方形", "triangle": "三角形"},
    sides={"left": "左边", "right": "右边", "top": "上面", "bottom": "下面"},
    describe=name_group_in_chinese,
    alone={"left": "左边有{0}", "right": "右边有{0}", "top": "上面有{0}", "bottom": "下面有{0}"},
    beside={"left": "{0}在{1}左边", "right": "{0}在{1}右边", "top": "{0}在{1}上面", "bottom": "{0}在{1}下面"},
    ask_color="{shape}是什么颜色的？",
    ask_shape="什么形状是{color}的？",
    ask_side="{color}的{shape}在哪里？",
    ask_number="一共有几个{shape}？",
    ask_presence="图里有{color}的{shape}吗？",
    presence=("有", "没有"),
)
LANGUAGES = {SCENES: ENGLISH, f"{SCENES}-zh": CHINESE}


def caption_groups(groups: Sequence[ShapeGroup], language: SceneLanguage = ENGLISH) -> tuple[str, ...]:
    """Return all right captions.

    >>> groups = [ShapeGroup(1, "red", "circle", "left"), ShapeGroup(3, "blue", "square", "right")]
    >>> caption_groups(groups)
    ('a red circle left of three blue squares', 'three blue squares right of a red circle')
    >>> caption_groups(groups, CHINESE)
    ('一个红色的圆在三个蓝色的正方形左边', '三个蓝色的正方形在一个红色的圆右边')
    >>> caption_groups([ShapeGroup(1, "red", "circle", "top")])
    ('a red circle at the top',)
    """
    words = [language.describe(language, group) for group in groups]
    if len(groups) == 1:
        return (language.alone[groups[0].side].format(words[0]),)
    first, second = groups
    return (
        language.beside[first.side].format(words[0], words[1]),
        language.beside[second.side].format(words[1], words[0]),
    )


def draw_questions(
    groups: Sequence[ShapeGroup], random: np.random.Generator, language: SceneLanguage = ENGLISH
) -> list[tuple[str, str]]:
    """Return some questions about a scene with their answers, no answer of which follows from the question alone.

    >>> draw_questions([ShapeGroup(2, "red", "circle", "left")], np.random.default_rng(1), CHINESE)[1]
    ('什么形状是红色的？', '圆')
    """
    asked = [*ask_about_groups(groups, language), ask_number(groups, random, language)]
    asked += [ask_presence(groups, random, language, there=there) for there in (True, False)]
    chosen = sorted(random.permutation(len(asked))[:QUESTIONS])
    return [asked[place] for place in chosen]


def ask_about_groups(groups: Sequence[ShapeGroup], language: SceneLanguage) -> Iterator[tuple[str, str]]:
    """Yield questions about the color, the shape and the side of each group, as far as it is clear which is meant."""
    shapes, colors = (Counter(getattr(group, name) for group in groups) for name in ("shape", "color"))
    for group in groups:
        words = {"color": language.colors[group.color], "shape": language.shapes[group.shape]}
        if shapes[group.shape] == 1:
            yield language.ask_color.format(**words), words["color"]
        if colors[group.color] == 1:
            yield language.ask_shape.format(**words), words["shape"]
        yield language.ask_side.format(**words), language.sides[group.side]


def ask_number(groups: Sequence[ShapeGroup], random: np.random.Generator, language: SceneLanguage) -> tuple[str, str]:
    """Return how many shapes of a kind there are, whatever their color."""
    shape = str(random.choice([group.shape for group in groups]))
    count = sum(group.number for group in groups if group.shape == shape)
    return language.ask_number.format(shape=language.shapes[shape]), language.numbers[count - 1]


def ask_presence(
    groups: Sequence[ShapeGroup], random: np.random.Generator, language: SceneLanguage, *, there: bool
) -> tuple[str, str]:
    """Return whether there is a shape of some color: one that is there, or one that is not."""
    known = {(group.color, group.shape) for group in groups}
    kinds = [(color, shape) for color in COLORS for shape in SHAPES if ((color, shape) in known) == there]
    color, shape = kinds[random.integers(len(kinds))]
    text = language.ask_presence.format(color=language.colors[color], shape=language.shapes[shape])
    return text, language.presence[0 if there else 1]
