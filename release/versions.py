"""Record what regard was tried with, and write docs/versions.md from the records.

    python release/versions.py try      # in the environment to be tried: adds its outcome to release/tried.json
    python release/versions.py          # writes the page; --check says whether it is up to date

An environment with torch runs `regard verify`, which compares every code path with the definition. One without can only
compile every module, with warnings as errors, and run what needs no torch: `regard --help` and `import regard`.
"""

import compileall
import json
import platform
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "release" / "tried.json"
PAGE = ROOT / "docs" / "versions.md"
HEAD = """# Versions that were tried

Generated from release/tried.json by `python release/versions.py`; do not edit. What the tests of this repository run
with is pinned in constraints.txt. The classifiers of `pyproject.toml` name the versions of Python with which
`regard verify` was run; of other versions nothing more is promised than their rows say.

| Python | torch | machine | tried with regard | what was run | outcome |
|---|---|---|---|---|---|
"""


def try_environment() -> dict[str, str]:
    """Run what this environment can run, and return the record of it."""
    try:
        torch, command = version("torch"), "regard verify"
        outcome = run("verify").strip().splitlines()[-1]
    except PackageNotFoundError:
        torch, command = "none", "every module compiled with warnings as errors, `import regard`, `regard --help`"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = compileall.compile_dir(str(find_package()), quiet=1, force=True)
        outcome = "works" if compiled and "verify" in run("--help") else "fails"
    return {
        "python": platform.python_version(),
        "torch": torch,
        "machine": f"{platform.system()} {platform.machine()}",
        "regard": run("--version").strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "ran": command,
        "outcome": outcome,
    }


def find_package() -> Path:
    """Return the folder of the installed regard."""
    spec = find_spec("regard")
    if spec is None or spec.origin is None:
        raise SystemExit("regard: got nothing, expected it to be installed; fix: pip install it first")
    return Path(spec.origin).parent


def run(*arguments: str) -> str:
    """Return what a command of regard prints; end if it fails."""
    command = [sys.executable, "-W", "error::SyntaxWarning", "-m", "regard", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def render_page(records: list[dict[str, str]]) -> str:
    """Return the page: a row for each record, the newest Python first."""
    ordered = sorted(records, key=lambda one: (one["python"].split("."), one["torch"]), reverse=True)
    rows = [
        f"| {one['python']} | {one['torch']} | {one['machine']} | {one['regard']}, {one['date']} | {one['ran']} |"
        f" {one['outcome']} |"
        for one in ordered
    ]
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Try this environment, write the page, or compare it."""
    records: list[dict[str, str]] = json.loads(RECORDS.read_text(encoding="utf-8"))
    if "try" in sys.argv:
        new = try_environment()
        same = ("python", "torch", "machine")
        records = [one for one in records if any(one[key] != new[key] for key in same)] + [new]
        RECORDS.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != render_page(records))
    PAGE.write_text(render_page(records), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
