"""Write docs/catalog.md from the docstrings of the catalog, and the code of Chinese pages from the English ones.

With `--check` only say whether they are up to date.
"""

import sys
from pathlib import Path

import pages

from regard.cli.descriptions import describe_family, select_families

DOCS = Path(__file__).parent


def build_page() -> str:
    """Return the whole catalog, a section for each family."""
    parts = ["# The catalog", "", "Generated from the docstrings by `make docs`; do not edit.", ""]
    for family in select_families():
        parts += [f"## {family}", ""]
        names: dict[str, list[str]] = {}
        texts: dict[str, str] = {}
        for entry in describe_family(family):
            names.setdefault(entry.part, []).append(f"`{entry.name}`")
            texts.setdefault(entry.part, entry.text)
        for part, text in texts.items():
            if text:
                parts += [f"### {part}: {', '.join(names[part])}", "", text, ""]
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    """Write the pages, or exit 1 if one of them differs."""
    made = {DOCS / "zh" / name: (pages.fill_code(name), "the English page") for name in pages.list_pages("zh")}
    made[DOCS / "catalog.md"] = (build_page(), "the docstrings")
    for path, (text, origin) in made.items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.relative_to(DOCS.parent)}: differs from {origin}; fix: make docs")


if __name__ == "__main__":
    main()
