"""Tries every fault at every place and writes docs/faults.md; `make kills` runs this.

python fault_table.py [FOLDER WITH LOGS]

Without a folder everything is tried, which takes a quarter of an hour on two idle cores.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "docs" / "faults.md"
KINDS = ("kill", "resume", "full", "vanish", "change", "error", "death")
KILLS = ("kill", "resume", "death")
HEAD = """# Faults and what comes of them

Made by `make kills`, which tries each fault at each place where a run touches its files or its peers; do not edit.
The run is small (six steps, a checkpoint at each, old ones deleted), the places are those of any run. After each fault
the run goes on with `regard resume`, or begins again if it had not begun, and what it leaves is compared with that of a
run without faults: weights, optimizer, progress and metrics, to the bit. `N` is the number of a step.
"""
MEANINGS = {
    "kill": "SIGKILL at each file operation, from the first to the last of a run; a write also when half is written",
    "resume": "SIGKILL at each file operation of resuming a run that was killed while it deleted a checkpoint",
    "full": "no space left on the disk at each operation that needs some",
    "vanish": "the run folder is moved away before each file operation, and brought back later",
    "change": "another process changes the weights of the oldest of several checkpoints before each file operation",
    "error": "an error in one of two processes at each call that concerns both",
    "death": "SIGKILL of one of two processes at each call that concerns both",
}


def describe_outcome(kind: str, line: dict[str, Any]) -> str:
    """Return how a fault ended, in words, which begin with LOST if something was lost."""
    if not line["same"]:
        return "LOST: not the same bits afterwards"
    codes = line.get("codes", [line.get("code")])
    said = line["said"] if isinstance(line["said"], list) else [line["said"]]
    if any(code in (1, 99) for code in codes):
        return f"LOST: ended by {codes}, {said}"
    if kind in ("kill", "resume"):
        new = line["place"].startswith(".run.writing")
        return "begins again, same bits" if new else "goes on, same bits"
    if kind in ("error", "death"):
        return describe_peers_outcome(kind, codes, said)
    sentence = codes == [2] and ", expected " in said[0]
    return "a sentence; goes on, same bits" if sentence else "does no harm" if codes == [0] else f"LOST: {codes}"


def describe_peers_outcome(kind: str, codes: list[int], said: list[str]) -> str:
    if kind == "error" and codes == [2, 2] and said[0] == said[1]:
        return "both end with its sentence; goes on, same bits"
    if kind == "death" and sorted(codes) == [-9, 2] and any(", expected " in text for text in said):
        return "the other ends with a sentence; goes on, same bits"
    return f"LOST: {codes}, {said}"


def rows(kind: str, lines: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, int]]:
    """Return how often each outcome came at each place."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for line in lines:
        place = (line["operation"], line["place"]) if "place" in line else (line["call"], f"process {line['rank']}")
        counts = found.setdefault(place, {})
        words = describe_outcome(kind, line)
        counts[words] = counts.get(words, 0) + 1
    return found


def write_page(logs: dict[str, list[dict[str, Any]]]) -> str:
    """Return the whole document."""
    kills = sum(len(lines) for kind, lines in logs.items() if kind in KILLS)
    lost = sum(describe_outcome(kind, line).startswith("LOST") for kind, lines in logs.items() for line in lines)
    total = f"{sum(map(len, logs.values())):,} faults, {kills:,} of them kills; something was lost {lost} times.\n"
    parts = [HEAD, total]
    for kind, lines in logs.items():
        parts += [f"## {MEANINGS[kind][0].upper()}{MEANINGS[kind][1:]}", "", f"{len(lines)} times.", ""]
        parts += ["| operation | where | outcome |", "|---|---|---|"]
        for (operation, where), counts in sorted(rows(kind, lines).items(), key=lambda row: row[0][::-1]):
            words = "; ".join(f"{text} ({count})" for text, count in sorted(counts.items()))
            parts.append(f"| {operation} | `{where}` | {words} |")
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def read(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


def attempt_all(kind: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    """Try a kind of fault at every place, or at those that the options leave."""
    command = [sys.executable, str(HERE / "fault_injection.py"), str(folder), kind, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    """Write the page; exit 1 where something was lost."""
    if len(sys.argv) > 1:
        logs = {kind: read(Path(sys.argv[1]) / f"{kind}.log") for kind in KINDS}
    else:
        with tempfile.TemporaryDirectory() as folder:
            logs = {kind: attempt_all(kind, Path(folder) / kind) for kind in KINDS}
    text = write_page(logs)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET}: {sum(map(len, logs.values()))} faults, {text.count('LOST')} places at which something was lost")
    sys.exit(1 if "LOST" in text else 0)


if __name__ == "__main__":
    main()
