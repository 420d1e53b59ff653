"""Run the code of the site's pages, and put what it prints and draws below it.

A page is written twice, in docs/en and docs/zh. The code stands in the English one, as fenced `python` blocks that run
one after another in one namespace, in an empty folder. If a block bound the name `figure`, `![caption](figure)` below
it shows what was drawn. The Chinese page has the same blocks in its own words (wording.py), so that it can be read
where it lies; docs/build.py writes them there, in place of older ones or of a line `{{ code }}`. A block that differs
only in what it prints runs once (prints.py), one that only draws a figure twice; from any other that differs, all run
again. Outcomes are kept in build/docs/cache under a name made from the code and from all of src, so that only what
could have changed runs again.
"""

import ast
import contextlib
import hashlib
import json
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from prints import PAIR, BothOutputs, is_drawing, merge_blocks
from wording import find_english, find_unused, find_unwritten, split_words, translate_code

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
    """Run the blocks of a page once for both languages, as far as they do the same, and then in each language."""
    import torch
    from matplotlib import rc_context

    torch.manual_seed(0)
    space: dict[str, Any] = {"__name__": "__page__"}
    with rc_context(), tempfile.TemporaryDirectory(prefix="regard-page-") as place:
        first, second = Path(place) / "first", Path(place) / "second"
        first.mkdir()
        with contextlib.chdir(first):
            pairs = list(run_common(name, code, folder, space))
        left, state, same = dict(space), torch.get_rng_state(), len(pairs)
        shutil.copytree(first, second)
        with contextlib.chdir(first):
            english = list(run_blocks(f"en/{name}", code.english, folder, space, same))
        torch.set_rng_state(state)
        with contextlib.chdir(second):
            chinese = list(run_blocks(f"zh/{name}", code.chinese, folder, left, same))
    return PageOutcome([pair[0] for pair in pairs] + english, [pair[1] for pair in pairs] + chinese)


def run_common(name: str, code: PageCode, folder: Path, space: dict[str, Any]) -> Iterator[tuple[Outcome, Outcome]]:
    """Run blocks until one does another thing in Chinese; yield what each printed and drew in both languages."""
    import torch

    for number, (english, chinese) in enumerate(zip(code.english, code.chinese, strict=True), 1):
        merged = merge_blocks(english, chinese)
        if merged is not None:
            out = BothOutputs()
            drawn = run_block(f"zh/{name}", number, merged, folder, space, out)  # its figure is shown there too
            yield Outcome(out.texts[0].getvalue(), drawn), Outcome(out.texts[1].getvalue(), drawn)
        elif is_drawing(english):
            copy, state = dict(space), torch.get_rng_state()
            (other,) = run_blocks(f"zh/{name}", code.chinese[:number], folder, copy, number - 1)
            torch.set_rng_state(state)
            (own,) = run_blocks(f"en/{name}", code.english[:number], folder, space, number - 1)
            yield own, other
        else:
            return


def run_blocks(page: str, blocks: list[str], folder: Path, space: dict[str, Any], begun: int = 0) -> Iterator[Outcome]:
    """Run blocks in one namespace from number `begun` on, and yield what each printed and drew."""
    for number, block in enumerate(blocks[begun:], begun + 1):
        out = BothOutputs()
        drawn = run_block(page, number, block, folder, space, out)
        yield Outcome(out.texts[0].getvalue(), drawn)


def run_block(
    page: str, number: int, block: str | ast.Module, folder: Path, space: dict[str, Any], out: BothOutputs
) -> str | None:
    """Run one block, and return the file of the figure that it drew, if any."""
    from matplotlib.figure import Figure

    language, shown = page[:2], space.get("figure")
    space[PAIR] = out.print_pair
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(block, f"docs/{page}, block {number}", "exec"), space)
    except Exception as error:
        raise PageError(f"docs/{page}, block {number}: {type(error).__name__}: {error}") from error
    figure = space.get("figure")
    if not isinstance(figure, Figure) or figure is shown:
        return None
    if language == "zh" and (words := find_english(figure)):
        raise PageError(f"docs/{page}, block {number}: got {words} in its figure, expected Chinese; fix: add words")
    drawn = f"{Path(page).stem}-{number}.{language}.svg"
    try:
        save_figure(figure, folder / drawn)
    except UserWarning as error:
        raise PageError(f"docs/{page}, block {number}: {error}; fix: install a font that has it") from None
    if signs := find_unwritten(figure):
        raise PageError(
            f"docs/{page}, block {number}: got {signs}, expected letters; fix: install a font that has them"
        )
    return drawn


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure whose bytes depend on nothing but its content; a character that no font has is an error."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "regard", "svg.fonttype": "path"}), warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph .* missing", UserWarning)
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
