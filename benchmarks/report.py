"""Make the tables in README.md and docs from the results: `python -m benchmarks.report [--check]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import comparisons
from benchmarks.claims import NAMES
from benchmarks.formats import format_amount, format_bound, format_entry, format_number, format_ratio, format_relative
from benchmarks.highlights import Language, render_highlights, render_tasks
from benchmarks.recipes.runs import TaskResult
from benchmarks.recipes.runs import load as load_task
from benchmarks.results import FOLDER, ROOT, CaseResult, CurveResult, Result, Setting, load

TASKS_BEGIN, TASKS_END = "<!-- tasks:begin -->", "<!-- tasks:end -->"
BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
PROGRAMS = (
    "serving",
    "long_recording",
    "viewers",
    "large_text",
)  # that measure in a browser, at a server or in processes of their own, by commands of their own
NOTHING = "Not measured yet: run `make bench`."
HOW = """\
Contenders of a case run in turn (A B C, A B C, …) in one process, after they were found to compute the same numbers.
A time is the median of its samples, with the quartiles in parentheses; a ratio is the median of the ratios of each
round. Peak memory is the rise of the resident set in a fresh process. The peers are pinned in `benchmarks/peers.txt`.

```console
$ make bench                                    # everything, on a machine that does nothing else
$ .venv/bin/python -m benchmarks window --quick # one claim, roughly
$ regard bench                                  # a quick table for your machine, without peers
```
"""


def load_results(folder: Path = FOLDER) -> list[Result]:
    """Return all recorded measurements, in the order of the claims."""
    return [load(path) for name in (*NAMES, *PROGRAMS) if (path := folder / f"{name}.json").exists()]


def render_summary(found: list[Result]) -> str:
    """Return one row for each bound."""
    if not found:
        return NOTHING
    rows = ["| claim | measured | claimed |", "|---|---|---|"]
    for result in found:
        for case in result.cases:
            for check in case.checks:
                says = "" if check.unit == "MB" else f" {check.says}"
                mark = "" if check.holds else " ✗"
                rows.append(
                    f"| {result.title}, {case.name} | **{format_ratio(check)}**{says}{mark} | {format_bound(check)} |"
                )
    return "\n".join(rows)


def render_settings(found: list[Result]) -> str:
    """Return where it was measured; each distinct place once."""
    lines = dict.fromkeys(describe_setting(result.setting) for result in found)
    return "\n".join(lines)


def describe_setting(setting: Setting) -> str:
    """Return one setting in words."""
    cores = f"{setting.threads} threads on {setting.cores} cores of {setting.processor}"
    cores += f", {setting.vectors}" if setting.vectors else ""
    versions = f"torch {setting.torch}, Python {setting.python}, {setting.system}"
    return f"{cores}; {versions}."


def describe_time(setting: Setting) -> str:
    """Return when, from which code, and what else was running."""
    busy = f"load average {setting.load:.2f}, others kept {setting.others:.2f} cores busy"
    loud = "" if setting.quiet else " **The machine was busy: these times are not to be trusted.**"
    return f"{setting.date}, commit {setting.commit}; {busy}.{loud}"


def replace_between(text: str, begin: str, end: str, block: str) -> str:
    """Return the text with what stands between two marks replaced, or put at the end of it with its marks."""
    marked = f"{begin}\n{block}\n{end}"
    if begin not in text:
        return f"{text.rstrip()}\n\n{marked}\n"
    before, rest = text.split(begin, 1)
    return before + marked + rest.split(end, 1)[1]


def render_readme(text: str, language: Language) -> str:
    """Return a README with the few figures that it shows."""
    tasks = {result.recipe: result for result in load_task_results()}
    text = replace_between(text, BEGIN, END, render_highlights(load_results(), language))
    return replace_between(text, TASKS_BEGIN, TASKS_END, render_tasks(tasks, language))


def load_task_results(folder: Path = FOLDER) -> list[TaskResult]:
    """Return the recorded results of the tasks' recipes."""
    return [load_task(path) for path in sorted(folder.glob("tasks-*.json"))]


def render_task_row(result: TaskResult) -> str:
    """Return one line: our result, those of others, and how long it took; other figures beside the first."""
    missed = {name: f" ✗ (≥ {least:g} wanted)" for name, least in result.missed.items()}
    beside = "; ".join(f"{name}: {value:.4g}{missed.get(name, '')}" for name, value in result.beside.items())
    bound = f"≥ {result.least:g}" if result.least is not None else f"≤ {result.most:g}" if result.most else ""
    mark = "" if result.within else f" ✗ ({bound} wanted)"
    reached = f"**{result.value:.4g}** {result.unit}{mark}" + (f"<br>{beside}" if beside else "")
    minutes = f"{result.runs[0].seconds / 60:.1f} min"
    return f"| {result.task} | {result.mechanism} | {result.data} | {reached} | {result.published} | {minutes} |"


def render_task_page(found: list[TaskResult]) -> str:
    """Return the whole of docs/results.md."""
    rows = [
        "| task | mechanism | data | ours | published | time |",
        "|---|---|---|---|---|---|",
        *map(render_task_row, found),
    ]
    how = "Each by one command, `python -m benchmarks.recipes NAME --data FOLDER`; configurations and seeds are in"
    where = "[benchmarks/results](../benchmarks/results). Times are of the clock, beside other work on the same cores."
    head = "# Results\n\n<!-- made by python -m benchmarks.report: do not edit -->"
    return f"{head}\n\n{how}\n{where}\n\n{chr(10).join(rows)}\n"


def render_page(found: list[Result], narrow: Sequence[Result] = ()) -> str:
    """Return the whole of docs/benchmarks.md; `narrow` are results of the same machine without AVX-512."""
    head = (
        f"# Benchmarks\n\n<!-- made by python -m benchmarks.report: do not edit -->\n\n{HOW}\n{render_summary(found)}\n"
    )
    settings = render_settings(list(narrow))
    table = [f"## With AVX2\n\n{settings}\n\n{render_summary(list(narrow))}\n"] if narrow else []
    return "\n".join([head, *table, *(_render_section(result) for result in found)])


def _render_section(result: Result) -> str:
    parts = [f"## {result.title}", f"{describe_setting(result.setting)} {describe_time(result.setting)}"]
    parts += [_render_case(case) for case in result.cases]
    if result.curves:
        parts.append(_render_growth(result))
    return "\n\n".join(parts) + "\n"


def _render_case(case: CaseResult) -> str:
    kind = case.measured or ("time" if case.unit == "s" else "peak memory")
    rows = [f"**{case.name}**", "", f"| | × ours | {kind} | difference from ours |", "|---|---|---|---|"]
    for entry in case.entries:
        apart = "–" if entry.difference is None else f"{entry.difference:.0e}"
        rows.append(f"| {entry.name} | {format_relative(entry, case)} | {format_entry(entry, case.unit)} | {apart} |")
    rows += [f"| {name} | | not measured: {reason} | |" for name, reason in case.missing.items()]
    if case.limit and not case.holds:
        rows += ["", f"What bounds it: {case.limit}"]
    return "\n".join(rows)


def _render_growth(result: Result) -> str:
    """Return the exponents, and the picture that was drawn with them."""
    head = (
        "One head of width 64, forward and backward unless it says forward; sdpa and eager: scaled dot product; local:"
        " a window of 256; linear: causal features; stream: additive; rows: sparsemax; flex: uncompiled, as torch runs"
        " it on a CPU. The exponent is the slope over the last four lengths."
    )
    rows = [
        "| backend | time | memory | longest | there |",
        "|---|---|---|---|---|",
        *map(_render_curve, result.curves),
    ]
    picture = f"![time and memory against the length](../benchmarks/results/{result.claim}.svg)"
    return "\n\n".join([head, "\n".join(rows), picture])


def _render_curve(curve: CurveResult) -> str:
    last = curve.points[-1]
    name = curve.backend if curve.backward else f"{curve.backend}, forward"
    slopes = f"n^{curve.time_exponent:.2f} | n^{curve.memory_exponent:.2f}"
    cost = f"{format_amount(last.seconds, 's')}, {format_number(last.megabytes)} MB"
    return f"| {name} | {slopes} | {last.length:,} | {cost} |"


def render_files(root: Path = ROOT) -> dict[Path, str]:
    """Return what the files should contain."""
    found = load_results()
    docs = root / "docs"
    readmes = {root / "README.md": "en", root / "README.zh-CN.md": "zh"}
    texts = {path: path.read_text(encoding="utf-8") for path in readmes if path.exists()}
    return {
        **{path: render_readme(text, readmes[path]) for path, text in texts.items()},  # type: ignore[arg-type]
        docs / "results.md": render_task_page(load_task_results()),
        docs / "benchmarks.md": render_page(found, load_results(FOLDER / "avx2")),
        docs / "compare.md": comparisons.render_page(comparisons.load_results()),
    }


def find_stale(root: Path = ROOT) -> list[Path]:
    """Return the files that differ from the results."""
    return [
        path
        for path, text in render_files(root).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def write(root: Path = ROOT) -> None:
    """Write those that differ."""
    for path, text in render_files(root).items():
        if path in find_stale(root):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def main() -> int:
    """Write, or only look."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a table is not as measured")
    if not parser.parse_args().check:
        write()
        return 0
    for path in find_stale():
        print(f"{path.name}: differs from benchmarks/results; fix: python -m benchmarks.report", file=sys.stderr)
    return 1 if find_stale() else 0


if __name__ == "__main__":
    sys.exit(main())
