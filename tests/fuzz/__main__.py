"""`python -m tests.fuzz --minutes 60`: compare random attentions with the definition."""

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.campaign import STRIDE, Findings, run_trials

FOUND = Path(__file__).parent / "found"


def main() -> int:
    """Read the command line, run trials, and print how they ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--trials", type=int, default=STRIDE, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; the same seed makes the same trials")
    parser.add_argument("--without", default="", help="choices to leave out: layout, offset, hidden, vmap, gaussian, …")
    parser.add_argument("--keep", type=Path, default=FOUND, help="the folder that failures are kept in as tests")
    given = parser.parse_args()
    found, start, trials = Findings(given.keep), time.monotonic(), 0
    without = frozenset(filter(None, given.without.split(",")))
    try:
        trials = run_trials(given.seed * STRIDE, given.trials, given.minutes * 60, without, found)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
    print(f"\n{trials:,} trials in {time.monotonic() - start:.0f} s: {len(found.counts)} kinds of failures")
    for kind, count in found.counts.most_common():
        print(f"  {count:5} × {' · '.join(map(str, kind))}")
    return 1 if found.counts else 0


if __name__ == "__main__":
    sys.exit(main())
