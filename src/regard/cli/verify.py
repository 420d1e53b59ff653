"""`regard verify`: every code path that this installation can take, against the definition in float64."""

import importlib
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.scores import Score
    from regard.verify import Error


def verify(target: str | None = None, *, full: bool = False) -> None:
    """Compare every code path with the definition in float64, values and gradients; exit 1 on a difference.

    Parameters
    ----------
    target
        Your own score, as package.module:Name; the whole catalog where it is not given.
    full
        Every combination of the catalog instead of every pair.
    """
    from regard import verify as checks

    console = Console()
    if target is not None:
        errors = list(checks.verify_score(load(target), name=target))
    else:
        cases = list(checks.product()) if full else checks.pairwise()
        errors = [error for case in track(cases, "verifying", console=console) for error in checks.verify([case])]
    console.print(table_of(errors))
    wrong = [error for error in errors if not error.right]
    for error in wrong[:10]:
        console.print(f"wrong: {error.case} by {error.backend}: value {error.value:.1e}, gradient {error.gradient:.1e}")
    console.print(f"{len(errors) - len(wrong)} of {len(errors)} paths agree with the definition")
    if wrong:
        sys.exit(1)


def table_of(errors: "Sequence[Error]") -> Table:
    """The worst error of each backend and each score."""
    from regard.verify import worst

    table = Table("backend", "score", "paths", "worst value", "worst gradient", box=None, pad_edge=False)
    groups: dict[tuple[str, str], list[Error]] = {}
    for error in errors:
        groups.setdefault((error.backend, error.case.score), []).append(error)
    for (backend, score), group in sorted(groups.items()):
        value, gradient = worst(e.value for e in group), worst(e.gradient for e in group)
        table.add_row(backend, score, str(len(group)), f"{value:.1e}", f"{gradient:.1e}")
    return table


def load(target: str) -> "Score":
    """A score from `package.module:Name`: an instance, or a class that needs no argument or the width."""
    from regard.errors import wrong
    from regard.scores import Score
    from regard.verify import SMALL

    module, _, name = target.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        fix = "write package.module:Name of something that can be imported from here"
        raise wrong("target", repr(target), f"a score ({error})", fix) from None
    if isinstance(found, type) and issubclass(found, Score):
        try:
            found = found()
        except TypeError:
            found = found(SMALL.query)
    if not isinstance(found, Score):
        raise wrong("target", repr(target), "a regard.Score", "subclass regard.Score")
    return found
