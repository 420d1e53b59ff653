"""Write recordings into one HTML file that needs no network and no server."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from regard.datasets.output_files import replace_output
from regard.errors import wrong
from regard.inspect.draw.bundle import bundle_script, read_static
from regard.inspect.draw.chapters import COARSER, Chapter, ReportBuilder, count_cells
from regard.inspect.draw.compression import pack, pack_within

BUDGET = 800_000  # bytes of weights; with the page around them, less than a megabyte
VECTOR_BITS = 11  # of a number of a vector: three digits of a term of a score
LEAST_BYTES = 0.7  # of a cell: causal weights, half of which are zeros, rounded as far as they may be
STYLES = ("drawing.css", "panel.css", "report.css")
PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>This report draws with JavaScript, which is off. 此报告需要启用 JavaScript。</noscript>
<main id="report"></main>
<script type="application/json" id="recording">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def render_report(
    chapters: Sequence[Chapter], title: str, *, language: Literal["en", "zh"] | None = None, budget: int = BUDGET
) -> str:
    """Return the whole page. Weights are exact if they fit in `budget` bytes, else rounded, and the page says so.

    >>> from regard.inspect.recording import Recording
    >>> page = render_report([Chapter("", Recording.from_weights({"map": [[0.25, 0.75]]}))], "a <title>")
    >>> "a &lt;title&gt;" in page, "https:" in page
    (True, False)
    """
    style, code = "".join(map(read_static, STYLES)), bundle_script("report.js")
    data = build_contents(chapters, title, budget) | {"language": language}
    # A token may be "</script>"; no sign that means anything to HTML is left in the data.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return PAGE.format(
        language=language or "en",
        policy=build_policy(style, code),
        title=html.escape(title),
        style=style,
        data=text,
        script=code,
    )


def build_contents(chapters: Sequence[Chapter], title: str, budget: int = BUDGET) -> dict[str, Any]:
    """Return what the page shows, as `web/static/chapters.js` reads it; its tables take at most `budget` bytes.

    Weights are rounded if need be; then the largest of several stand for all of them; then sites are left out.
    """
    for cells in (None, *COARSER):
        if cells != COARSER[-1] and LEAST_BYTES * count_cells(chapters, cells) > budget:
            continue
        builder = ReportBuilder(cells)
        written = [chapter for chapter in map(builder.encode_chapter, chapters) if chapter["sites"]]
        if not written:
            got = "; ".join(builder.notes) or "no attention at all"
            raise wrong("recording", got, "at least one attention", "record a model that attends")
        tables, bits = pack_within(builder.tables.arrays, budget)
        if sum(map(len, tables)) <= budget:
            break
    else:
        tables = drop_sites(written, tables, builder, budget)
    return {
        "title": title,
        "exact": bits,
        "notes": builder.notes,
        "made": "regard",
        "labels": builder.labels,
        "tables": tables,
        "vectors": pack_vectors(written, builder, budget - sum(map(len, tables))),
        "chapters": written,
    }


def pack_vectors(written: list[dict[str, Any]], builder: ReportBuilder, room: int) -> list[str]:
    """Return the vectors of the sites, packed, as long as they fit; later sites lose theirs, in `written` too."""
    packed: list[str] = []
    for array in builder.vectors.arrays:
        packed.append(pack(array, VECTOR_BITS))
        room -= len(packed[-1])
        if room < 0:
            packed.pop()
            break
    for site in (site for chapter in written for site in chapter["sites"]):
        if site["origin"] and max(site["origin"]["parts"].values()) >= len(packed):
            site["origin"] = None
    return packed


def drop_sites(written: list[dict[str, Any]], tables: list[str], builder: ReportBuilder, budget: int) -> list[str]:
    """Leave out sites from the end until the tables of the others fit, and return these tables; one site stays."""
    fits = list(accumulate(map(len, tables)))
    kept = max(1, sum(size <= budget for size in fits))
    for chapter in written:
        sites = chapter["sites"]
        chapter["sites"] = [site for site in sites if site["table"] < kept]
        hidden = len(sites) - len(chapter["sites"])
        if hidden:
            builder.add_note(f"{hidden} of {len(sites)} sites are not shown: too many weights")
    written[:] = [chapter for chapter in written if chapter["sites"]]
    return tables[:kept]


def build_policy(style: str, code: str) -> str:
    """Return a policy by which nothing is loaded from anywhere and nothing but the page's own script runs."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, code))
    styles, scripts = (f"'sha256-{value}'" for value in hashes)
    allowed = f"script-src {scripts}; style-src {styles}; img-src data:; media-src blob:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def save_report(page: str, path: Path | str) -> None:
    """Write the page."""
    path = Path(path)
    if not path.parent.is_dir():
        raise wrong("output", path, "a folder that exists", f"make {path.parent} first")
    with replace_output(path) as written:
        written.write_text(page, encoding="utf-8", newline="\n")
