"""Which fonts have the characters of a picture. matplotlib's own has no Chinese, Japanese or Korean."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from unicodedata import category, combining

from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font

OWN = "DejaVu Sans"
EXTRA = "zhplot"  # the package of the extra `zh` that has a font with Chinese
BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
LONGEST = 20  # signs of a label


class Labels(NamedTuple):
    """Labels as they can be drawn, and what the numbers among them stand for."""

    ticks: list[str]
    legend: list[str]


class Lettering(NamedTuple):
    """Font families to draw with, in this order, and the characters that none of them has."""

    families: tuple[str, ...]
    missing: frozenset[str]

    def labels(self, tokens: Sequence[str], first: int = 1) -> Labels:
        """Tokens as ticks. One that no font can write is a number in brackets, which the legend explains.

        >>> Lettering((OWN,), frozenset("年")).labels(["2026年", "a b", "2026年"])
        Labels(ticks=['[1]', 'a␣b', '[1]'], legend=['[1] 2026U+5E74'])
        """
        numbers: dict[str, int] = {}
        ticks = []
        for token in tokens:
            text = visible(token)
            if self.missing & set(text):
                ticks.append(f"[{numbers.setdefault(text, first + len(numbers))}]")
            else:
                ticks.append(shortened(text))
        return Labels(ticks, [f"[{number}] {self.spelled(text)}" for text, number in numbers.items()])

    def spelled(self, text: str) -> str:
        """The text with missing characters by their numbers, rather than as empty boxes."""
        return "".join(f"U+{ord(sign):04X}" if sign in self.missing else sign for sign in text)


def visible(token: str) -> str:
    """A token with its blanks and control characters made visible.

    >>> visible("a b"), visible(""), visible("\\u202ea")
    ('a␣b', '∅', 'U+202Ea')
    """
    signs = (BLANKS.get(sign) or (f"U+{ord(sign):04X}" if category(sign) in ("Cc", "Cf") else sign) for sign in token)
    return "".join(signs) or "∅"


def shortened(text: str, most: int = LONGEST) -> str:
    """At most so many signs, the last of them an ellipsis; an accent stays with its letter.

    >>> shortened("abcdef", 4), shortened("abc", 4)
    ('abc…', 'abc')
    """
    if len(text) <= most:
        return text
    end = most - 1
    while end > 1 and combining(text[end]):
        end -= 1
    return text[:end] + "…"


def lettering(texts: Iterable[str]) -> Lettering:
    """The fewest fonts of this machine, first found, that have all characters of the texts."""
    wanted = {sign for text in texts for sign in visible(text)} | set("…[]U+")
    families = [OWN]
    missing = wanted - characters(Path(findfont(FontProperties(family=OWN))))
    for path in chain(system_fonts(), extra_fonts()) if missing else ():
        found = missing & characters(path)
        if found:
            families.append(known_family(path))
            missing -= found
        if not missing:
            break
    return Lettering(tuple(families), frozenset(missing))


def system_fonts() -> Iterator[Path]:
    """The fonts of the system, plain ones meant for many scripts first: a decorative one may have the character too."""
    paths = {Path(path) for path in findSystemFonts()}
    return iter(sorted(paths, key=lambda path: (plainness(path.stem), path)))


def plainness(name: str) -> tuple[bool, bool, bool]:
    """What sorts a font's name: those for many scripts before others, regular weights, no serifs.

    >>> sorted(["NotoSerifCJK-Bold", "Fancy", "NotoSansCJK-Bold", "NotoSansCJK-Regular"], key=plainness)[0]
    'NotoSansCJK-Regular'
    """
    many = name.startswith(("Noto", "wqy", "Droid"))
    return not many, not name.endswith("Regular") and "-" in name, "Serif" in name


def extra_fonts() -> Iterator[Path]:
    """The font of the extra `zh`, where that is installed. Its package is not imported: that would change defaults."""
    found = find_spec(EXTRA)
    places = [] if found is None else list(found.submodule_search_locations or [])
    return chain.from_iterable(sorted(Path(place).glob("fonts/*.[ot]tf")) for place in places)


@lru_cache(maxsize=256)
def characters(path: Path) -> frozenset[str]:
    """Every character of a font; none where the file cannot be read."""
    try:
        return frozenset(map(chr, FT2Font(str(path)).get_charmap()))
    except (RuntimeError, OSError):
        return frozenset()


def known_family(path: Path) -> str:
    """The family of a font that matplotlib has been told about: its list may be older than the font."""
    family = FT2Font(str(path)).family_name
    if family not in fontManager.get_font_names():
        fontManager.addfont(str(path))
    return family
