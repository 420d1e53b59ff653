"""The output of one cell of a notebook: a panel that needs no network, and a still picture where no script runs."""

import base64
import html
import json
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from regard.errors import InputError
from regard.inspect.display.picture import draw_picture
from regard.inspect.display.subjects import build_chapter
from regard.inspect.draw.bundle import bundle_script, read_static
from regard.inspect.draw.chapters import Chapter
from regard.inspect.draw.compression import EXACT
from regard.inspect.draw.report import STYLES, build_contents
from regard.inspect.recording import Recording

BUDGET = 2_000_000  # bytes of weights in one cell: 12 × 12 causal heads of 64 tokens to the last digit
HTML, SVG = "text/html", "image/svg+xml"
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
    return render_subject(subject)[HTML]


def build_bundle(subject: object) -> Mapping[str, object]:
    """Return what a notebook shows of an object, by media type; nothing in a terminal, which shows its text."""
    return {} if is_terminal() else {"text/plain": describe_subject(subject), **render_subject(subject)}


def render_subject(subject: object) -> dict[str, str]:
    """Return the panel and the picture of anything that can be shown, or why it cannot be."""
    try:
        return render_chapters([build_chapter(subject)])
    except InputError as error:
        return {HTML: f"<pre>{html.escape(describe_subject(subject))}\n{html.escape(str(error))}</pre>"}


def render_chapters(chapters: Sequence[Chapter], title: str = "", language: Language | None = None) -> dict[str, str]:
    """Return the output of one cell by media type: a panel whose weights take at most `BUDGET` bytes, and a picture."""
    contents = build_contents(chapters, title, BUDGET) | {"language": language}
    if not is_complete(contents, chapters):
        contents["kernel"] = link_kernel(chapters[0].recording)
    picture = draw_picture(contents)
    panel = OUTPUT.format(
        title=html.escape(title or "attention"),
        picture=f"data:{SVG};base64,{base64.b64encode(picture.encode()).decode()}",
        data=dump_json(contents),
        script=bundle_cell_script(),
    )
    return {HTML: panel, SVG: picture}


def is_complete(contents: Mapping[str, Any], chapters: Sequence[Chapter]) -> bool:
    """Return whether every digit of every weight stands in the cell."""
    sites = [site for chapter in contents["chapters"] for site in chapter["sites"]]
    dropped = len(sites) < sum(len(chapter.recording) for chapter in chapters)
    return contents["exact"] == EXACT and not dropped and all(site["step"] == [1, 1] for site in sites)


def link_kernel(recording: Recording) -> str | None:
    """Return the name by which the panel can ask the kernel for a recording; None without a kernel or anywidget."""
    if not in_notebook() or find_spec("anywidget") is None:
        return None
    name: str = import_module("regard.inspect.display.kernel_link").KernelLink(recording).name
    return name


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


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook."""
    module = sys.modules.get("IPython")
    return module is not None and module.get_ipython() is not None and not is_terminal()
