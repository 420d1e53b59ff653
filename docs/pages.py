"""Run the code of the site's pages, and put what it prints and draws below it.

A page is written twice, in docs/en and docs/zh. The code stands in the English one, as fenced `python` blocks that run
one after another in one namespace, in an empty folder. If a block bound the name `figure`, `![caption](figure)` below
it shows what was drawn. The Chinese page has the same blocks in its own words (wording.py), so that it can be read
where it lies; docs/build.py writes them there, in place of older ones or of a line `{{ code }}`. From the first block
that differs, all run again. Outcomes are kept in build/docs/cache under a name made from the code and from all of src,
so that only what could have changed runs again.
"""

import ast
import contextlib
import hashlib
import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from wording import find_english, find_unused, split_words, translate_code

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "docs" / "cache"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"^!\[(.+)\]\(figure\)$", re.MULTILINE)
LINE_END = re.compile(r"(?<=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef”])\n *(?=[\u4e00-\u9fff“（《])")
PLACE = re.compile(r"^```python\n.*?^```$|^\{\{ code \}\}$", re.MULTILINE | re.DOTALL)  # of a block


class PageError(Exception):
    """A page that cannot be built; the message names the page, and says what is wrong with it."""


class Outcome(NamedTuple):
    """What one block printed, and the file of what it drew, if anything."""

    printed: str
    figure: str | None


class PageCode(NamedTuple):
    """The blocks of a page as both languages show them."""

    english: list[str]
    chinese: list[str]

    @property
    def same(self) -> int:
        """How many blocks, from the first, do the same in both: they run once."""
        pairs = zip(self.english, self.chinese, strict=True)
        return sum(1 for _ in takewhile(lambda pair: strip_comments(pair[0]) == strip_comments(pair[1]), pairs))


class PageOutcome(NamedTuple):
    """The outcomes of the blocks of a page in both languages."""

    english: list[Outcome]
    chinese: list[Outcome]


def list_pages(language: str) -> list[str]:
    """Return the pages of a language by their path below its folder."""
    folder = ROOT / "docs" / language
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.md"))


def compare_languages() -> None:
    """Raise if a page is missing in one of the languages."""
    english, chinese = set(list_pages("en")), set(list_pages("zh"))
    if english != chinese:
        raise PageError(f"pages: got {sorted(english ^ chinese)} in one language only; fix: write them in the other")


def read_page(language: str, name: str) -> str:
    """Return the text of a page as it was written."""
    return (ROOT / "docs" / language / name).read_text(encoding="utf-8")


def compute_source_digest() -> str:
    """Return a name for everything that a block may call."""
    digest = hashlib.sha256(f"{sys.version} {version('torch')} {version('matplotlib')}".encode())
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".py", ".cpp", ".hpp"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def read_code(name: str) -> PageCode:
    """Return the blocks of a page in both languages."""
    words, _ = split_words(read_page("zh", name))
    blocks = BLOCK.findall(read_page("en", name))
    unused = find_unused(blocks, words)
    if unused:
        raise PageError(
            f"docs/zh/{name}: got words {unused}, expected strings or comments of its code; fix: correct them"
        )
    return PageCode(blocks, [translate_code(block, words) for block in blocks])


def strip_comments(code: str) -> str:
    """Return what a block does, without its comments and layout."""
    return ast.unparse(ast.parse(code))


def run_page(name: str, source: str) -> PageOutcome:
    """Return the outcomes of all blocks of a page, from the cache if nothing changed."""
    code = read_code(name)
    key = hashlib.sha256("\0".join([name, source, *code.english, "", *code.chinese]).encode()).hexdigest()[:24]
    folder = CACHE / key
    if not (folder / "outcomes.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = run_both(name, code, folder)
        (folder / "outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")
    kept = json.loads((folder / "outcomes.json").read_text(encoding="utf-8"))
    return PageOutcome(*([Outcome(said, drawn and str(folder / drawn)) for said, drawn in each] for each in kept))


def run_both(name: str, code: PageCode, folder: Path) -> PageOutcome:
    """Run the blocks of a page, and again those that differ in Chinese, from what the blocks before had left."""
    import torch
    from matplotlib import rc_context

    torch.manual_seed(0)
    space: dict[str, Any] = {"__name__": "__page__"}
    with rc_context(), tempfile.TemporaryDirectory(prefix="regard-page-") as place:
        first, second = Path(place) / "first", Path(place) / "second"
        first.mkdir()
        with contextlib.chdir(first):
            common = list(run_blocks(f"zh/{name}", code.chinese[: code.same], folder, space))  # shown there too
        left, state = dict(space), torch.get_rng_state()
        shutil.copytree(first, second)
        with contextlib.chdir(first):
            english = list(run_blocks(f"en/{name}", code.english, folder, space, code.same))
        torch.set_rng_state(state)
        with contextlib.chdir(second):
            chinese = list(run_blocks(f"zh/{name}", code.chinese, folder, left, code.same))
    return PageOutcome(common + english, common + chinese)


def run_blocks(page: str, blocks: list[str], folder: Path, space: dict[str, Any], begun: int = 0) -> Iterator[Outcome]:
    """Run blocks in one namespace from number `begun` on, and yield what each printed and drew."""
    from matplotlib.figure import Figure

    language, stem = page[:2], Path(page).stem
    shown = space.get("figure")
    for number, block in enumerate(blocks[begun:], begun + 1):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(block, f"docs/{page}, block {number}", "exec"), space)
        except Exception as error:
            raise PageError(f"docs/{page}, block {number}: {type(error).__name__}: {error}") from error
        figure = space.get("figure")
        drawn = f"{stem}-{number}.{language}.svg" if isinstance(figure, Figure) and figure is not shown else None
        if drawn is not None:
            if language == "zh" and (words := find_english(figure)):
                raise PageError(
                    f"docs/{page}, block {number}: got {words} in its figure, expected Chinese; fix: add words"
                )
            save_figure(figure, folder / drawn)
        shown = figure
        yield Outcome(printed.getvalue(), drawn)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure whose bytes depend on nothing but its content."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "regard", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def render_english(name: str, outcomes: list[Outcome], folder: Path) -> str:
    """Return the page with outputs below its blocks and files for its figures, which are copied to `folder`."""
    return _show_outcomes(name, read_page("en", name), outcomes, folder)


def fill_code(name: str) -> str:
    """Return the Chinese page as it must be: with the blocks of the English one, in its own words."""
    text, blocks = read_page("zh", name), read_code(name).chinese
    places = len(PLACE.findall(text))
    if places != len(blocks):
        raise PageError(
            f"docs/zh/{name}: got {places} blocks, expected {len(blocks)}; fix: write a line {{{{ code }}}} for each"
        )
    left = iter(blocks)
    return PLACE.sub(lambda _: f"```python\n{next(left)}```", text)


def render_chinese(name: str, outcomes: list[Outcome], folder: Path) -> str:
    """Return the Chinese page with outputs and figures, as `render_english` does."""
    if read_page("zh", name) != fill_code(name):
        raise PageError(f"docs/zh/{name}: got code that is not the English page's; fix: python docs/build.py")
    _, text = split_words(read_page("zh", name))
    return _show_outcomes(name, join_lines(text), outcomes, folder)


def join_lines(text: str) -> str:
    """Join the lines of a Chinese paragraph: a browser would show their ends as spaces."""
    return LINE_END.sub("", text)


def _show_printed(outcome: Outcome) -> str:
    return f'\n\n```text title="→"\n{outcome.printed.rstrip()}\n```' if outcome.printed.strip() else ""


def _show_outcomes(name: str, text: str, outcomes: list[Outcome], folder: Path) -> str:
    """Write below each block what it printed, and replace every `(figure)` by the file that the block above drew."""
    blocks = iter(outcomes)
    whole = BLOCK.sub(lambda found: found[0] + _show_printed(next(blocks)), text)
    ends = [found.end() for found in BLOCK.finditer(whole)]

    def show(found: re.Match[str]) -> str:
        above = sum(end <= found.start() for end in ends)
        drawn = outcomes[above - 1].figure if above else None
        if drawn is None:
            raise PageError(f"{name}: the block above “{found[1]}” drew no figure; fix: bind the name figure")
        target = folder / Path(drawn).name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(drawn).read_bytes())
        return f"![{found[1]}]({target.name})"

    return FIGURE.sub(show, whole)
