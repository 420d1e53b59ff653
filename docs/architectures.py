"""Write docs/architectures.md: what `observe` records of every architecture of transformers. Takes 15 minutes.

Run `python -m docs.architectures` from the root. Models run in a worker process with a time limit, which is replaced if
a model ends it, so that none can stop the others.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "architectures.md"
LIMIT = 60.0  # seconds of a processor for one architecture: a busy machine changes nothing
PATIENCE = 1800.0  # seconds on the clock, for one that waits for something
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
    """Examine all architectures and write the page; with names as arguments, examine those and print them."""
    if sys.argv[1:] == ["--worker"]:
        run_worker()
        return
    from tests.inspect.observe.architectures import list_architectures

    names = sys.argv[1:] or list_architectures()
    rows = examine_all(names)
    if sys.argv[1:]:
        print(build_table(rows))
    else:
        TARGET.write_text(build_page(rows), encoding="utf-8")


def run_worker() -> None:
    """Examine the architecture named on each line of input, and answer with a line of JSON."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import torch

    from tests.inspect.observe.architectures import look_at

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(look_at(line.strip()).json) + "\n")
        answers.flush()


def examine_all(names: list[str]) -> list[dict[str, Any]]:
    """Return the rows of all; a row says if its model took too long or ended the process."""
    rows, worker = [], None
    for name in names:
        worker = worker if worker is not None and worker.poll() is None else start_worker()
        row = examine(worker, name)
        if "identical" not in row:
            worker.kill()
            worker.wait()
        rows.append(row)
        print(f"{len(rows)}/{len(names)} {name}: {classify(row)} {row.get('why', '')}", file=sys.stderr, flush=True)
    if worker is not None:
        worker.kill()
    return rows


def start_worker() -> subprocess.Popen[str]:
    """Start a process that waits for names, and wait until it has loaded the libraries: that is not timed."""
    command = [sys.executable, "-W", "ignore", "-m", "docs.architectures", "--worker"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    worker = subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload]
    worker.stdout.readline()
    return worker  # type: ignore[no-any-return]


def examine(worker: subprocess.Popen[str], name: str) -> dict[str, Any]:
    """Return the answer of the worker for one architecture."""
    requests, answers = worker.stdin, worker.stdout
    if requests is None or answers is None:
        return {"name": name, "why": "not run: no pipe"}
    requests.write(name + "\n")
    requests.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(answers, selectors.EVENT_READ)
        begin, end = read_processor_time(worker.pid), time.monotonic() + PATIENCE
        while not selector.select(1.0):
            if read_processor_time(worker.pid) - begin > LIMIT or time.monotonic() > end:
                return {"name": name, "why": f"not run: more than {LIMIT:.0f} s"}
    line = answers.readline()
    return json.loads(line) if line else {"name": name, "why": "not run: it ended the process"}  # type: ignore[no-any-return]


def read_processor_time(process: int) -> float:
    """Return the seconds that a process has computed for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()  # behind its name
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


STATES = {
    "seen": "all attention that looks like it was seen",
    "in part": "some was seen, the rest is named in the notes",
    "named": "not seen, and named in the notes",
    "none": "has no attention",
    "not built": "cannot be built small from its config alone, or not run with plain inputs",
}


def classify(row: dict[str, Any]) -> str:
    """Return the state of a row: a key of STATES."""
    if "identical" not in row or row["why"].startswith("not "):
        return "not built"
    named = any(": not seen: " in note for note in row["notes"])
    if row["sites"]:
        return "in part" if named else "seen"
    return "named" if named else "none"


def build_page(rows: list[dict[str, Any]]) -> str:
    """Return the whole page."""
    import transformers

    counts = {name: sum(classify(row) == name for row in rows) for name in STATES}
    lines = [f"| {counts[name]} | **{name}**: {text} |" for name, text in STATES.items()]
    head = HEAD.format(version=transformers.__version__) + "\n".join(lines)
    built = [row for row in rows if classify(row) != "not built"]
    rest = [f"| {row['name']} | {_escape(row['why'])} |" for row in rows if classify(row) == "not built"]
    lost = "\n".join(["## Not built", "", "| architecture | why |", "|---|---|", *rest])
    return f"{head}\n\n## Built\n\n{build_table(built)}\n{lost}\n"


def build_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the rows."""
    return COLUMNS + "".join(f"| {' | '.join(_build_cells(row))} |\n" for row in rows)


def _build_cells(row: dict[str, Any]) -> list[str]:
    if classify(row) == "not built":
        return [row["name"], row.get("kind", ""), "", "", "", _escape(row["why"])]
    bits = {True: "yes", False: "**no**", None: "–"}[row["identical"]]
    equal = f"{row['equal']} of {row['given']}" if row["given"] else "–"
    notes = [note.split(": not seen: ")[-1] for note in row["notes"] if not note.startswith("nothing")]
    remarks = "; ".join(dict.fromkeys([row["why"], *notes] if row["why"] else notes))
    return [row["name"], row["kind"], str(row["sites"]), bits, equal, _escape(remarks) or classify(row)]


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
