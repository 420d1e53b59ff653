"""`regard verify`: every code path that this installation can take, against the definition in float64."""

import importlib
import sys
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.progress import track
from rich.table import Table

from regard.cli.output import open_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.compute.verification import Deviation, Part


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
        Your own score, bias, mask, normalizer or aggregate, as package.module:Name; the whole catalog if none is given.
    full
        Every combination of the catalog instead of every pair.
    queries
        The number of queries that your part is made for, if it is made for one.
    keys
        The number of keys that your part is made for.
    heads
        The number of heads that your part is made for.
    """
    from regard.compute import catalog_cases
    from regard.compute import verification as checks
    from regard.compute.claims import find_false_claims

    console = open_console()
    if target is None:
        cases = list(catalog_cases.iterate_cases()) if full else catalog_cases.choose_pairwise_cases()
        errors = [error for case in track(cases, "verifying", console=console) for error in checks.verify([case])]
        is_right = report(console, errors, ())
    else:
        sizes, part = checks.choose_sizes(queries, keys, heads), load_part(target)
        errors = list(checks.verify_part(part, sizes=sizes, name=target))
        is_right = report(console, errors, list(find_false_claims(part, sizes=sizes or checks.SMALL)))
    if not is_right:
        sys.exit(1)


def report(console: Console, errors: "Sequence[Deviation]", false_claims: "Sequence[str]") -> bool:
    """Print the result; return whether every path agrees with the definition and every claim is true."""
    console.print(build_table(errors))
    wrong = [error for error in errors if not error.within_tolerance]
    for error in wrong[:10]:
        console.print(f"wrong: {error.case} by {error.backend}: value {error.value:.1e}, gradient {error.gradient:.1e}")
    for claim in false_claims:
        console.print(f"wrong: {claim}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(errors) - len(wrong)} of {len(errors)} paths agree with the definition")
    return not wrong and not false_claims


def build_table(errors: "Sequence[Deviation]") -> Table:
    """Return the worst error of each backend and each score."""
    from regard.compute.verification import find_worst

    table = Table("backend", "score", "paths", "worst value", "worst gradient", box=None, pad_edge=False)
    groups: dict[tuple[str, str], list[Deviation]] = {}
    for error in errors:
        groups.setdefault((error.backend, error.case.score), []).append(error)
    for (backend, score), group in sorted(groups.items()):
        value, gradient = find_worst(e.value for e in group), find_worst(e.gradient for e in group)
        table.add_row(backend, score, str(len(group)), f"{value:.1e}", f"{gradient:.1e}")
    return table


def load_part(target: str) -> "Part":
    """Return the part that `package.module:Name` names: an instance, or a class that `construct` can build."""
    from regard.compute.verification import KINDS
    from regard.errors import wrong

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
    """Return an instance of a class without arguments; a score may need a width, a bias the number of heads."""
    from regard.algebra.biases import Bias
    from regard.algebra.scores import Score
    from regard.compute.verification import SMALL
    from regard.errors import wrong

    numbers = {Score: SMALL.query, Bias: SMALL.heads}
    for arguments in ((), *((number,) for base, number in numbers.items() if issubclass(kind, base))):
        try:
            return kind(*arguments)
        except TypeError as error:
            reason = error
    fix = f"name an instance: write part = {kind.__name__}(…) into the module, and its name behind the colon"
    raise wrong("target", repr(target), f"a class that needs no argument ({reason})", fix)
