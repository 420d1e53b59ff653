"""How notebooks ask objects for a picture; the panel that answers is above every layer, so it is found by its name."""

from collections.abc import Mapping
from importlib import import_module

PANEL = "regard.inspect.display.cell"


def render_html(subject: object) -> str:
    """Return an object's attention as HTML for one cell of a notebook."""
    html: str = import_module(PANEL).render_cell(subject)
    return html


def build_bundle(subject: object) -> Mapping[str, object]:
    """Return what a notebook shows of an object, by media type."""
    bundle: Mapping[str, object] = import_module(PANEL).build_bundle(subject)
    return bundle


class NotebookDisplay:
    """An object that notebooks show as a panel of its attention."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render_html(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Mapping[str, object]:
        return build_bundle(self)
