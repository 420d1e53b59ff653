"""Choose fonts that have the characters of a picture: matplotlib's own has no Chinese, Japanese or Korean."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, name

from matplotlib import rcParams
from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font

from regard.errors import wrong
from regard.inspect.draw.labels import LONGEST, make_visible, shorten_together
from regard.inspect.draw.words import CHINESE, Language, localize

DEFAULT_FAMILY = "DejaVu Sans"
EXTRA = "zhplot"  # the package of the extra `zh` that has a font with Chinese
CJK = "fonts-noto-cjk, or the extra zh"
# What to install for characters whose Unicode names begin so. Color emoji are bitmaps, which matplotlib cannot draw.
PACKAGES = {
    **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH"), CJK),
    **dict.fromkeys(("DEVANAGARI", "BENGALI", "TAMIL", "THAI", "ETHIOPIC", "KHMER", "TIBETAN"), "fonts-noto-core"),
}
SYMBOLS, LETTERS = "fonts-symbola", "fonts-noto-core"


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

    def make_ticks(
        self, tokens: Sequence[str], longest: int = LONGEST, numbers: dict[str, int] | None = None
    ) -> TickLabels:
        """Return tokens as ticks. One that no font can write is a number in brackets, which the legend explains.

        `numbers` has those of other axes, which are used again and not explained twice; new ones are added to it.

        >>> FontSet((DEFAULT_FAMILY,), frozenset("年")).make_ticks(["2026年", "a ", "2026年"])
        TickLabels(ticks=['[1]', 'a␣', '[1]'], legend=['[1] 2026U+5E74'])
        """
        numbers = {} if numbers is None else numbers
        explained, texts = len(numbers), list(map(make_visible, tokens))
        for text in texts:
            if self.missing & set(text):
                numbers.setdefault(text, 1 + len(numbers))
        ticks = [f"[{numbers[text]}]" if text in numbers else text for text in texts]
        legend = [f"[{number}] {self.describe(text)}" for text, number in numbers.items()]
        return TickLabels(shorten_together(ticks, longest), legend[explained:])

    def spell_missing(self, text: str) -> str:
        """Return the text with missing characters spelled by their numbers instead of empty boxes.

        >>> FontSet((DEFAULT_FAMILY,), frozenset("年月")).spell_missing("a年月b年")
        'aU+5E74+6708bU+5E74'
        """
        runs = groupby(text, lambda sign: sign in self.missing)
        return "".join(
            "U" + "".join(f"+{ord(sign):04X}" for sign in signs) if missing else "".join(signs)
            for missing, signs in runs
        )

    def describe(self, text: str) -> str:
        """Return what a text is, if it cannot be written: the names of symbols, or its characters by their numbers.

        >>> FontSet((DEFAULT_FAMILY,), frozenset("🙂")).describe("🙂")
        'slightly smiling face'
        """
        if all(category(sign) == "So" for sign in text):
            return " + ".join(name(sign, "").lower() for sign in text)
        return self.spell_missing(text)

    def explain(self, legend: Sequence[str], language: Language = "en") -> list[str]:
        """Return the notes on ticks that are numbers: what they stand for, and which fonts to install."""
        if not legend:
            return []
        packages = localize(" or ", language).join(dict.fromkeys(map(find_package, sorted(self.missing))))
        what = localize("numbers stand for what no font here can write", language)
        return [", ".join(legend), f"{what}: {localize('install {}', language).format(packages)}"]


def find_package(sign: str) -> str:
    """Return the package that has a font for a character.

    >>> find_package("年"), find_package("न"), find_package("🙂")
    ('fonts-noto-cjk, or the extra zh', 'fonts-noto-core', 'fonts-symbola')
    """
    known = PACKAGES.get(name(sign, "").replace("-", " ").partition(" ")[0])
    return known or (LETTERS if category(sign)[0] in "LM" else SYMBOLS)


def choose_fonts(texts: Iterable[str], language: Language = "en") -> FontSet:
    """Return fonts of this machine that together have all characters of the texts, as few as possible."""
    words = set("".join(CHINESE.values())) if language == "zh" else set()
    letters = find_fonts({sign for text in texts for sign in make_visible(text)} | words | set("…[]U+ "))
    if words & letters.missing:
        raise wrong("language", "zh", "a font with Chinese on this machine", f"install {CJK}")
    return letters


def add_chinese_font() -> None:
    """Let figures of matplotlib's own write Chinese: what its font does not have is taken from one that has it."""
    rcParams["font.family"] = list(choose_fonts((), "zh").families)


def find_fonts(wanted: set[str]) -> FontSet:
    """Return fonts that have as many of the characters as possible: matplotlib's own, then as few more as possible."""
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
