"""The output of one cell of a notebook: a panel that needs no network, and a still picture where no script runs."""

import html
import json
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from regard.errors import InputError
from regard.inspect.display.picture import draw_picture
from regard.inspect.display.subjects import build_chapter
from regard.inspect.draw.bundle import bundle_script, read_static
from regard.inspect.draw.chapters import Chapter
from regard.inspect.draw.report import STYLES, build_contents

BUDGET = 2_000_000  # bytes of weights in one cell: 12 × 12 causal heads of 64 tokens to the last digit
Language = Literal["en", "zh"]
# The picture is replaced by the panel when the script runs; what a page forbids to run leaves the picture. JupyterLab
# would take keys for its own (0 0 restarts the kernel) unless it is told not to.
OUTPUT = (
    '<div class="regard-output" data-lm-suppress-shortcuts="true">'
    '<img alt="{title}" src="{picture}" style="max-width:100%">'
    '<script type="application/json">{data}</script><script>{script}</script></div>'
)


def render_cell(subject: object) -> str:
    """Return the panel of anything that can be shown, or why it cannot be."""
    try:
        return render_chapters([build_chapter(subject)])
    except InputError as error:
        return f"<pre>{html.escape(describe_subject(subject))}\n{html.escape(str(error))}</pre>"


def build_bundle(subject: object) -> Mapping[str, object]:
    """Return what a notebook shows of an object, by media type; nothing in a terminal, which shows its text."""
    if is_terminal():
        return {}
    return {"text/plain": describe_subject(subject), "text/html": render_cell(subject)}


def render_chapters(chapters: Sequence[Chapter], title: str = "", language: Language | None = None) -> str:
    """Return the output of one cell; its weights take at most `BUDGET` bytes."""
    contents = build_contents(chapters, title, BUDGET) | {"language": language}
    return OUTPUT.format(
        title=html.escape(title or "attention"),
        picture=draw_picture(contents),
        data=dump_json(contents),
        script=bundle_cell_script(),
    )


@lru_cache
def bundle_cell_script() -> str:
    """Return the script of a cell, with its style in it: styles stay within the panel, and others stay out."""
    style = "".join(map(read_static, STYLES))
    return f"(() => {{ const style = {dump_json(style)};\n{bundle_script('output.js')}}})();"


def dump_json(values: Any) -> str:
    """Return JSON that HTML cannot mistake for its own: a token may be "</script>"."""
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def describe_subject(subject: object) -> str:
    """Return one line about an object, for places that show text."""
    name = type(subject).__name__
    shape = getattr(getattr(subject, "weights", subject), "shape", None)
    return repr(subject) if shape is None else f"<{name} of {' × '.join(map(str, shape))} weights>"


def is_terminal() -> bool:
    """Return whether IPython runs in a terminal, where no panel can be shown."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and not hasattr(shell, "kernel")
