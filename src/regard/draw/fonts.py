"""Which fonts have the characters of a picture. matplotlib's own has no Chinese, Japanese or Korean."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font

OWN = "DejaVu Sans"


class Lettering(NamedTuple):
    """Font families to draw with, in this order; characters that none of them has; what to say about those."""

    families: tuple[str, ...]
    missing: frozenset[str]

    @property
    def note(self) -> str:
        """One sentence for the picture's margin, or nothing."""
        if not self.missing:
            return ""
        return f"no font here has {len(self.missing)} of the characters, written as U+…; fonts-noto-cjk has most"

    def spelled(self, text: str) -> str:
        """The text with missing characters by their numbers, rather than as empty boxes.

        >>> Lettering((OWN,), frozenset("年")).spelled("2026年")
        '2026U+5E74'
        """
        return "".join(f"U+{ord(sign):04X}" if sign in self.missing else sign for sign in text)


def lettering(texts: Iterable[str]) -> Lettering:
    """The fewest fonts of this machine, first found, that have all characters of the texts."""
    wanted = {sign for text in texts for sign in text if not sign.isspace()}
    families = [OWN]
    missing = wanted - characters(Path(findfont(FontProperties(family=OWN))))
    for path in others() if missing else ():
        found = missing & characters(path)
        if found:
            families.append(known_family(path))
            missing -= found
        if not missing:
            break
    return Lettering(tuple(families), frozenset(missing))


def others() -> Iterator[Path]:
    """The fonts of the system, those meant for many scripts first: a decorative one may have the character too."""
    paths = sorted({Path(path) for path in findSystemFonts()})
    return iter(sorted(paths, key=lambda path: not path.name.startswith(("Noto", "wqy", "Droid"))))


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
