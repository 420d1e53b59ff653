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

DEFAULT_FAMILY = "DejaVu Sans"
EXTRA = "zhplot"  # the package of the extra `zh` that has a font with Chinese
BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
LONGEST = 20  # signs of a label


class TickLabels(NamedTuple):
    """Labels as they can be drawn, and what the numbers among them stand for."""

    ticks: list[str]
    legend: list[str]


class FontSet(NamedTuple):
    """Font families to draw with, in this order, and the characters that none of them has."""

    families: tuple[str, ...]
    missing: frozenset[str]

    def make_ticks(self, tokens: Sequence[str], first: int = 1) -> TickLabels:
        """Tokens as ticks. One that no font can write is a number in brackets, which the legend explains.

        >>> FontSet((DEFAULT_FAMILY,), frozenset("年")).make_ticks(["2026年", "a b", "2026年"])
        TickLabels(ticks=['[1]', 'a␣b', '[1]'], legend=['[1] 2026U+5E74'])
        """
        numbers: dict[str, int] = {}
        ticks = []
        for token in tokens:
            text = make_visible(token)
            if self.missing & set(text):
                ticks.append(f"[{numbers.setdefault(text, first + len(numbers))}]")
            else:
                ticks.append(shorten(text))
        return TickLabels(ticks, [f"[{number}] {self.spell_missing(text)}" for text, number in numbers.items()])

    def spell_missing(self, text: str) -> str:
        """The text with missing characters by their numbers, rather than as empty boxes."""
        return "".join(f"U+{ord(sign):04X}" if sign in self.missing else sign for sign in text)


def make_visible(token: str) -> str:
    """A token with its blanks and control characters made visible.

    >>> make_visible("a b"), make_visible(""), make_visible("\\u202ea")
    ('a␣b', '∅', 'U+202Ea')
    """
    signs = (BLANKS.get(sign) or (f"U+{ord(sign):04X}" if category(sign) in ("Cc", "Cf") else sign) for sign in token)
    return "".join(signs) or "∅"


def shorten(text: str, most: int = LONGEST) -> str:
    """At most so many signs, the last of them an ellipsis; an accent stays with its letter.

    >>> shorten("abcdef", 4), shorten("abc", 4)
    ('abc…', 'abc')
    """
    if len(text) <= most:
        return text
    end = most - 1
    while end > 1 and combining(text[end]):
        end -= 1
    return text[:end] + "…"


def choose_fonts(texts: Iterable[str]) -> FontSet:
    """The fewest fonts of this machine, first found, that have all characters of the texts."""
    wanted = {sign for text in texts for sign in make_visible(text)} | set("…[]U+")
    families = [DEFAULT_FAMILY]
    missing = wanted - read_characters(Path(findfont(FontProperties(family=DEFAULT_FAMILY))))
    for path in chain(find_system_fonts(), find_extra_fonts()) if missing else ():
        found = missing & read_characters(path)
        if found:
            families.append(register_family(path))
            missing -= found
        if not missing:
            break
    return FontSet(tuple(families), frozenset(missing))


def find_system_fonts() -> Iterator[Path]:
    """The fonts of the system, plain ones meant for many scripts first: a decorative one may have the character too."""
    paths = {Path(path) for path in findSystemFonts()}
    return iter(sorted(paths, key=lambda path: (rank_font(path.stem), path)))


def rank_font(name: str) -> tuple[bool, bool, bool]:
    """What sorts a font's name: those for many scripts before others, regular weights, no serifs.

    >>> sorted(["NotoSerifCJK-Bold", "Fancy", "NotoSansCJK-Bold", "NotoSansCJK-Regular"], key=rank_font)[0]
    'NotoSansCJK-Regular'
    """
    many = name.startswith(("Noto", "wqy", "Droid"))
    return not many, not name.endswith("Regular") and "-" in name, "Serif" in name


def find_extra_fonts() -> Iterator[Path]:
    """The font of the extra `zh`, where that is installed. Its package is not imported: that would change defaults."""
    found = find_spec(EXTRA)
    places = [] if found is None else list(found.submodule_search_locations or [])
    return chain.from_iterable(sorted(Path(place).glob("fonts/*.[ot]tf")) for place in places)


@lru_cache(maxsize=256)
def read_characters(path: Path) -> frozenset[str]:
    """Every character of a font; none where the file cannot be read."""
    try:
        return frozenset(map(chr, FT2Font(str(path)).get_charmap()))
    except (RuntimeError, OSError):
        return frozenset()


def register_family(path: Path) -> str:
    """The family of a font that matplotlib has been told about: its list may be older than the font."""
    family = FT2Font(str(path)).family_name
    if family not in fontManager.get_font_names():
        fontManager.addfont(str(path))
    return family
