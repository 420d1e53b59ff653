"""`regard verify`: every code path that this installation can take, against the definition in float64."""

import importlib
import sys
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.progress import track
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.verify import Error, Part


def verify(
    target: str | None = None,
    *,
    full: bool = False,
    queries: int | None = None,
    keys: int | None = None,
    heads: int | None = None,
) -> None:
    """Compare every code path with the definition in float64, values and gradients; exit 1 on a difference.

    Parameters
    ----------
    target
        Your own score, bias, mask, normalizer or aggregate, as package.module:Name, a class or an instance; what it
        says of itself is tried too. The whole catalog where it is not given.
    full
        Every combination of the catalog instead of every pair.
    queries
        The number of queries that your part is made for, if it is made for one.
    keys
        The number of keys that your part is made for.
    heads
        The number of heads that your part is made for.
    """
    from regard import verify as checks
    from regard.claims import find_false_claims

    console = Console()
    false: list[str] = []
    if target is not None:
        sizes = checks.choose_sizes(queries, keys, heads)
        part = load(target)
        false = list(find_false_claims(part, sizes=sizes or checks.SMALL))
        errors = list(checks.verify_part(part, sizes=sizes, name=target))
    else:
        cases = list(checks.product()) if full else checks.pairwise()
        errors = [error for case in track(cases, "verifying", console=console) for error in checks.verify([case])]
    console.print(table_of(errors))
    wrong = [error for error in errors if not error.right]
    for error in wrong[:10]:
        console.print(f"wrong: {error.case} by {error.backend}: value {error.value:.1e}, gradient {error.gradient:.1e}")
    for sentence in false:
        console.print(f"wrong: {sentence}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(errors) - len(wrong)} of {len(errors)} paths agree with the definition")
    if wrong or false:
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


def load(target: str) -> "Part":
    """A part from `package.module:Name`: an instance, or a class that needs no argument, or a width, or heads."""
    from regard.errors import wrong
    from regard.verify import KINDS

    module, _, name = target.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        fix = "write package.module:Name of something that can be imported from here"
        raise wrong("target", repr(target), f"a part of attention ({error})", fix) from None
    if isinstance(found, type) and issubclass(found, KINDS):
        found = construct(target, found)
    if not isinstance(found, KINDS):
        names = ", ".join(f"regard.{kind.__name__}" for kind in KINDS)
        raise wrong("target", repr(target), f"one of {names}", "subclass one of them")
    return cast("Part", found)


def construct(target: str, kind: type) -> object:
    """An instance of a class that needs no argument; a score may want a width, and a bias the number of heads."""
    from regard.biases import Bias
    from regard.errors import wrong
    from regard.scores import Score
    from regard.verify import SMALL

    number = {Score: SMALL.query, Bias: SMALL.heads}
    for arguments in ((), *((own,) for base, own in number.items() if issubclass(kind, base))):
        try:
            return kind(*arguments)
        except TypeError as error:
            reason = error
    fix = f"name an instance: write part = {kind.__name__}(…) into the module, and its name behind the colon"
    raise wrong("target", repr(target), f"a class that needs no argument ({reason})", fix)
