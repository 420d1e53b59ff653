"""Modules that look like attention, were called, and of which nothing was seen: they are named."""

import functools
from collections.abc import Collection, Iterable
from typing import Any

from regard.compute.watchers import WATCHERS
from regard.inspect.observe.attention_modules import UNKNOWN, explain_unseen, looks_like_attention
from regard.inspect.observe.patches import Function, is_observed
from regard.inspect.observe.sites import Site

MAX_NAMES = 3  # names in a note; there may be a hundred layers


def wrap_module_call(original: Function) -> Function:
    """The replacement of `nn.Module.__call__`, which remembers who was called."""

    @functools.wraps(original)
    def wrapper(module: Any, *arguments: Any, **named: Any) -> Any:
        if is_observed():
            for watcher in WATCHERS.get():
                if isinstance(called := getattr(watcher, "called", None), set):
                    called.add(id(module))
        return original(module, *arguments, **named)

    return wrapper


def describe_unseen(called: Iterable[Site], known: Collection[str]) -> list[str]:
    """Return a note for each class of which modules look like attention and are neither `known` nor have known parts.

    A module that has such a one inside of it is not named beside it.
    """
    alike = [site for site in called if looks_like_attention(site.module)]
    names = {site.name for site in alike}
    lost = [site for site in alike if not _is_covered(site.name, known, names)]
    classes: dict[type, list[Site]] = {}
    for site in lost:
        classes.setdefault(type(site.module), []).append(site)
    return [_format_note(kind.__name__, sites) for kind, sites in classes.items()]


def _is_covered(name: str, known: Collection[str], alike: Collection[str]) -> bool:
    inside = any(other.startswith(f"{name}.") for other in (*known, *alike))
    around = any(name.startswith(f"{other}.") for other in known if other in alike)
    return name in known or inside or around


def _format_note(kind: str, sites: list[Site]) -> str:
    names = ", ".join(site.name for site in sites[:MAX_NAMES])
    more = f" and {len(sites) - MAX_NAMES} more" if len(sites) > MAX_NAMES else ""
    return f"{names}{more}: not seen: {kind}: {explain_unseen(sites[0].module) or UNKNOWN}"
