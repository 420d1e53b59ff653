"""Tables of the site from recorded results: `{{ table NAME }}` in a page shows benchmarks/results/NAME.json."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
TABLE = re.compile(r"^\{\{ table ([\w-]+) \}\}$", re.MULTILINE)
HEADS = {
    "en": ("median", "from", "to", "recorded {date}, {processor}, torch {torch}"),
    "zh": ("中位数", "最小", "最大", "记录于 {date}，{processor}，torch {torch}"),
}


def fill_tables(text: str, language: str) -> str:
    """Replace every `{{ table NAME }}` of a page."""
    return TABLE.sub(lambda found: render_table(json.loads((RESULTS / f"{found[1]}.json").read_text()), language), text)


def render_table(result: dict[str, Any], language: str) -> str:
    """Return the rows of a comparison, or the runs of a task, as a table with what it was measured on."""
    median, least, most, origin = HEADS[language]
    if "found" in result:
        title, rows = result["found"]["title"], result["found"]["rows"]
        lines = [f"| {title} | {median} | {least} | {most} |", "|---|---|---|---|"]
        for row in rows:
            values = row["values"]
            numbers = (statistics.median(values), min(values), max(values))
            lines.append(f"| {row['name']} | " + " | ".join(f"{number:.4g}" for number in numbers) + " |")
    else:
        lines = [f"| {result['title']} | {result['unit']} |", "|---|---|"]
        lines += [f"| {run['name']} | {find_metric(run, result['metric'])} |" for run in result["runs"]]
    machine = result["machine"]
    note = origin.format(date=result["date"], processor=machine["processor"], torch=machine["torch"])
    return "\n".join([*lines, "", f"*{note}*"])


def find_metric(run: dict[str, Any], name: str) -> str:
    """Return one metric of a run, whose parts are separated by dots; the last of them if the part has others."""
    found: Any = run["scores"] if "scores" in run else run.get("metrics", {})
    if name in found:
        return f"{found[name]:.4g}"
    for part in name.split("."):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return f"{found:.4g}" if isinstance(found, int | float) else "—"
