"""Choose fonts that have the characters of a picture: matplotlib's own has no Chinese, Japanese or Korean."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font

from regard.inspect.draw.labels import make_visible, shorten

DEFAULT_FAMILY = "DejaVu Sans"
EXTRA = "zhplot"  # the package of the extra `zh` that has a font with Chinese


class TickLabels(NamedTuple):
    """Labels that can be drawn, and what the numbers among them stand for."""

    ticks: list[str]
    legend: list[str]


class FontSet(NamedTuple):
    """Font families to draw with, in this order, and the characters that none of them has."""

    families: tuple[str, ...]
    missing: frozenset[str]

    @property
    def style(self) -> dict[str, Any]:
        """Properties of a text in these fonts; a dollar sign in it does not begin a formula."""
        return {"fontfamily": list(self.families), "parse_math": False}

    def make_ticks(self, tokens: Sequence[str], first: int = 1) -> TickLabels:
        """Return tokens as ticks. One that no font can write is a number in brackets, which the legend explains.

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
        """Return the text with missing characters spelled by their numbers instead of empty boxes."""
        return "".join(f"U+{ord(sign):04X}" if sign in self.missing else sign for sign in text)


def choose_fonts(texts: Iterable[str]) -> FontSet:
    """Return fonts of this machine that together have all characters of the texts, as few as possible."""
    wanted = {sign for text in texts for sign in make_visible(text)} | set("…[]U+")
    families = [DEFAULT_FAMILY]
    missing = wanted - read_characters(Path(findfont(FontProperties(family=DEFAULT_FAMILY))))
    for path in chain(find_system_fonts(), find_extra_fonts()) if missing else ():
        written = missing & read_characters(path)
        if written:
            families.append(register_family(path))
            missing -= written
        if not missing:
            break
    return FontSet(tuple(families), frozenset(missing))


def find_system_fonts() -> Iterator[Path]:
    """Return the fonts of the system, plain ones for many scripts first: a decorative one may have the sign too."""
    paths = {Path(path) for path in findSystemFonts()}
    return iter(sorted(paths, key=lambda path: (rank_font(path.stem), path)))


def rank_font(name: str) -> tuple[bool, bool, bool]:
    """Return a sort key for a font's name: those for many scripts first, regular weights, no serifs.

    >>> sorted(["NotoSerifCJK-Bold", "Fancy", "NotoSansCJK-Bold", "NotoSansCJK-Regular"], key=rank_font)[0]
    'NotoSansCJK-Regular'
    """
    many = name.startswith(("Noto", "wqy", "Droid"))
    return not many, not name.endswith("Regular") and "-" in name, "Serif" in name


def find_extra_fonts() -> Iterator[Path]:
    """Return the font of the extra `zh`, without importing its package, which would change matplotlib's defaults."""
    package = find_spec(EXTRA)
    folders = [] if package is None else list(package.submodule_search_locations or [])
    return chain.from_iterable(sorted(Path(folder).glob("fonts/*.[ot]tf")) for folder in folders)


@lru_cache(maxsize=256)
def read_characters(path: Path) -> frozenset[str]:
    """Return every character of a font; none if the file cannot be read."""
    try:
        return frozenset(map(chr, FT2Font(str(path)).get_charmap()))
    except (RuntimeError, OSError):
        return frozenset()


def register_family(path: Path) -> str:
    """Return the family of a font, and add it to matplotlib's list, which may be older than the font."""
    family = FT2Font(str(path)).family_name
    if family not in fontManager.get_font_names():
        fontManager.addfont(str(path))
    return family
