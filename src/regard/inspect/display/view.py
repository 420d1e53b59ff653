"""Show attention wherever Python runs: in the cell of a notebook, else in the browser."""

import os
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from regard.inspect.display.cell import Language, describe_subject, in_notebook, render_chapters
from regard.inspect.display.subjects import build_chapter
from regard.inspect.draw.report import render_report, save_report


def view(
    subject: object,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    item: int = 0,
    title: str = "",
    language: Language | None = None,
) -> None:
    """Show attention in the cell of a notebook, or in the browser if there is no notebook.

    `subject` is a recording, one of its attentions, weights, what `attend` returned, a prediction, or weights as
    tensors: (queries, keys), (heads, queries, keys), (batch, heads, queries, keys), or a list of those, one for each
    layer, as `outputs.attentions` of transformers. `queries` and `keys` are tokens; queries alone label both axes.
    """
    chapter = build_chapter(subject, queries, keys, item)
    if not in_notebook():
        open_report(render_report([chapter], title or describe_subject(subject), language=language))
        return
    from IPython.display import display

    bundle = {"text/plain": describe_subject(subject), **render_chapters([chapter], title, language)}
    display(bundle, raw=True)  # type: ignore[no-untyped-call]


def open_report(page: str) -> None:
    """Open a page in the browser, from a file that stays until the system clears its temporary files.

    Over SSH and wherever there is no browser, say where the file is.
    """
    path = Path(tempfile.mkdtemp(prefix="regard-")) / "attention.html"
    save_report(page, path)
    if not has_screen() or not webbrowser.open(path.as_uri()):
        sys.stderr.write(f"regard.view: no browser on this machine; open {path}\n")


def has_screen() -> bool:
    """Return whether a browser could show something: without a screen, one that runs in the terminal would be found."""
    if sys.platform in ("win32", "darwin"):
        return "SSH_CONNECTION" not in os.environ
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
