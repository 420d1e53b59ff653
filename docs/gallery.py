"""The gallery: every figure of the site as a thumbnail that leads to the code that draws it."""

import re
from pathlib import Path

PICTURE = re.compile(r"^!\[(.+)\]\(([\w-]+\.svg)\)$", re.MULTILINE)
TITLES = {
    "en": ("Gallery", "Each picture leads to the page with the code that draws it."),
    "zh": ("图集", "点开每张图，就到画出它的代码所在的那一页。"),
}


def render_gallery(folder: Path, language: str) -> str:
    """Return the page of all figures below `folder`, in the order of the pages' names."""
    title, note = TITLES[language]
    lines = [f"# {title}", "", note, "", '<div class="gallery" markdown>', ""]
    for path in sorted(folder.rglob("*.md")):
        if path.parent.name in ("records", "reference"):
            continue
        place = path.relative_to(folder).parent.as_posix()
        prefix = "" if place == "." else f"{place}/"
        for caption, picture in PICTURE.findall(path.read_text(encoding="utf-8")):
            lines += [f"[![{caption}]({prefix}{picture})<br>{caption}]({prefix}{path.name})", ""]
    return "\n".join([*lines, "</div>", ""])
