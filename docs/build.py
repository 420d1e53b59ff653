"""Write docs/catalog.md from the docstrings of the catalog; with `--check` only say whether it is up to date."""

import sys
from pathlib import Path

from regard.cli.descriptions import describe_family, select_families

TARGET = Path(__file__).parent / "catalog.md"


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
    """Write the page, or exit 1 if it differs."""
    text = build_page()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != text:
        sys.exit("docs/catalog.md: differs from the docstrings; fix: make docs")


if __name__ == "__main__":
    main()
