"""Writes docs/architectures.md: what `observe` sees of every architecture of transformers. Takes a quarter of an hour.

`python -m docs.architectures` from the root of the project. Each model is built and run in a process of its own kind,
with a time limit, so that none can stop the others.
"""

import json
import os
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "architectures.md"
LIMIT = 60.0  # seconds for one architecture
MEMORY = 8 * 2**30  # bytes that a process may ask for
HEAD = """# What `observe` sees of the models of transformers

Made by `python -m docs.architectures`; do not edit. Every architecture that transformers {version} makes a model of
(`AutoModel`, causal, sequence to sequence), from its config with few layers and little width, without weights from the
network. *Sites* are the modules whose attention was seen in one forward pass. *Same bits*: the output is that of the
model nobody observes. *Same weights*: of the tables that the model itself gives for `output_attentions=True` in eager
attention, how many are among those seen; – if it gives none. Some give cut, averaged or unnormalized tables (CPM-Ant,
WavLM, ProphetNet), and PaliGemma masks otherwise in eager attention. What was not seen is said by `recording.notes`.

| | |
|---|---|
"""
COLUMNS = "| architecture | class | sites | same bits | same weights | notes |\n|---|---|---|---|---|---|\n"


def main() -> None:
    """Look at all of them and write the page; arguments are those to look at and print instead."""
    if sys.argv[1:] == ["--worker"]:
        work()
        return
    from tests.observing.architectures import architectures

    names = sys.argv[1:] or architectures()
    rows = sweep(names)
    if sys.argv[1:]:
        print(table(rows))
    else:
        TARGET.write_text(page(rows), encoding="utf-8")


def work() -> None:
    """Look at each architecture that is named on a line, and answer with a line of JSON."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import torch

    from tests.observing.architectures import look_at

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(look_at(line.strip()).json) + "\n")
        answers.flush()


def sweep(names: list[str]) -> list[dict[str, Any]]:
    """The rows of all; one that takes too long, or ends its process, is said to."""
    rows, worker = [], None
    for name in names:
        worker = worker if worker is not None and worker.poll() is None else start()
        row = ask(worker, name)
        if "identical" not in row:
            worker.kill()
            worker.wait()
        rows.append(row)
        print(f"{len(rows)}/{len(names)} {name}: {state(row)} {row.get('why', '')}", file=sys.stderr, flush=True)
    if worker is not None:
        worker.kill()
    return rows


def start() -> subprocess.Popen[str]:
    """A process that waits for names; what it takes to load the libraries is no architecture's fault."""
    command = [sys.executable, "-W", "ignore", "-m", "docs.architectures", "--worker"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    worker = subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload]
    worker.stdout.readline()
    return worker  # type: ignore[no-any-return]


def ask(worker: subprocess.Popen[str], name: str) -> dict[str, Any]:
    """What the process says of one architecture."""
    given, got = worker.stdin, worker.stdout
    if given is None or got is None:
        return {"name": name, "why": "not run: no pipe"}
    given.write(name + "\n")
    given.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(got, selectors.EVENT_READ)
        if not selector.select(LIMIT):
            return {"name": name, "why": f"not run: more than {LIMIT:.0f} s"}
    line = got.readline()
    return json.loads(line) if line else {"name": name, "why": "not run: it ended the process"}  # type: ignore[no-any-return]


STATES = {
    "seen": "all attention that looks like it was seen",
    "in part": "some was seen, the rest is named in the notes",
    "named": "not seen, and named in the notes",
    "none": "has no attention",
    "not built": "cannot be built small from its config alone, or not run with plain inputs",
}


def state(row: dict[str, Any]) -> str:
    """One word for a row."""
    if "identical" not in row or row["why"].startswith("not "):
        return "not built"
    named = any(": not seen: " in note for note in row["notes"])
    if row["sites"]:
        return "in part" if named else "seen"
    return "named" if named else "none"


def page(rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    import transformers

    counts = {name: sum(state(row) == name for row in rows) for name in STATES}
    lines = [f"| {counts[name]} | **{name}**: {text} |" for name, text in STATES.items()]
    head = HEAD.format(version=transformers.__version__) + "\n".join(lines)
    built = [row for row in rows if state(row) != "not built"]
    rest = [f"| {row['name']} | {_cell(row['why'])} |" for row in rows if state(row) == "not built"]
    lost = "\n".join(["## Not built", "", "| architecture | why |", "|---|---|", *rest])
    return f"{head}\n\n## Built\n\n{table(built)}\n{lost}\n"


def table(rows: list[dict[str, Any]]) -> str:
    """The rows that were built, or the reasons of those that were not."""
    return COLUMNS + "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)


def _cells(row: dict[str, Any]) -> list[str]:
    if state(row) == "not built":
        return [row["name"], row.get("kind", ""), "", "", "", _cell(row["why"])]
    bits = {True: "yes", False: "**no**", None: "–"}[row["identical"]]
    equal = f"{row['equal']} of {row['given']}" if row["given"] else "–"
    notes = [note.split(": not seen: ")[-1] for note in row["notes"] if not note.startswith("nothing")]
    said = "; ".join(dict.fromkeys([row["why"], *notes] if row["why"] else notes))
    return [row["name"], row["kind"], str(row["sites"]), bits, equal, _cell(said) or state(row)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
