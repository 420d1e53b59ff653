"""Reach a recorded result: `python -m benchmarks.recipes NAME --data FOLDER`. What was interrupted is resumed."""

import argparse
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.recipes.recipe import list_recipes, read_recipe
from benchmarks.recipes.runs import run_recipe, save
from benchmarks.results import FOLDER

ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    """Train what is not trained yet, evaluate, record; 0 where the bound is reached, 1 where it is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("name", nargs="?", help="one of " + ", ".join(list_recipes()))
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder that holds the data sets")
    parser.add_argument("--runs", type=Path, default=ROOT / "build" / "recipes", help="where run folders are kept")
    given = parser.parse_args()
    if given.name is None:
        print("\n".join(list_recipes()))
        return 0
    if given.name not in list_recipes():
        print(
            f"recipes: got {given.name}, expected one of {', '.join(list_recipes())}; fix: check the name",
            file=sys.stderr,
        )
        return 2
    result = run_recipe(read_recipe(given.name), given.data, given.runs)
    save(result, FOLDER)
    report.write()
    said = "reached" if result.reached else "missed"
    print(f"{result.recipe}: {result.metric} {result.value:.4g}, {said}")
    return 0 if result.reached else 1


if __name__ == "__main__":
    sys.exit(main())
