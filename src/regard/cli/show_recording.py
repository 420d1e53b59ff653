"""`regard show` of a recording: what Recording.save kept, in the terminal, as a picture or as a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter
from rich.console import Console

from regard.cli.figures import FigureOptions, ShowFlags, ShowOptions
from regard.cli.output import open_console, print_path
from regard.errors import find_nearest, wrong

if TYPE_CHECKING:
    from regard.inspect.draw.words import Language
    from regard.inspect.recording import Recording

TERMINAL, PICTURE, SMALL = (120, 240), (1000, 1000), (64, 64)  # cells at most


class AttentionCells(NamedTuple):
    """The weights of one attention, or the largest of several in a cell, and the labels of its rows and columns."""

    weights: Any
    rows: Sequence[str] | None
    columns: Sequence[str] | None


def show(
    recording: Path,
    site: str | None = None,
    *,
    head: int | None = None,
    all_heads: Annotated[bool, Parameter(negative="")] = False,
    show_options: ShowFlags = None,
) -> None:
    """Show a saved recording.

    Parameters
    ----------
    recording
        The file, as Recording.save wrote it.
    site
        Which attention, by its name or a glob; the last one where none is named.
    head
        Which head, counted from 0 as in Python; their mean where none is named.
    all_heads
        Draw every head of every attention in one picture, or of those that the glob fits.
    """
    from regard.inspect.recording import Recording

    options = show_options or ShowOptions()
    loaded, console = Recording.load(recording), open_console()
    if options.html is not None:
        from regard.inspect.draw.chapters import Chapter
        from regard.inspect.draw.report import render_report, save_report

        selected = loaded if site is None else loaded.select(choose_site(loaded, site, several=True))
        save_report(render_report([Chapter(recording.stem, selected)], recording.stem), options.html)
        print_path("page", options.html)
        return
    if options.output is None:
        print_map(loaded, choose_site(loaded, site), head, console)
    elif all_heads:
        sites = choose_site(loaded, site or "*", several=True)
        options.save(draw_all_heads(loaded, sites, options, recording.stem))
    else:
        options.save(draw_map(loaded, choose_site(loaded, site), head, options, recording.stem))


def choose_site(recording: "Recording", site: str | None, *, several: bool = False) -> str:
    """Return the name of the last site that fits; if several are allowed, the glob itself."""
    names = list(recording) if site is None else recording.find_sites(site)
    if not names:
        known = f"{len(recording)} names" if recording else "a recording that is not empty"
        fix = f"try '{find_nearest(site or '', recording)}'" if recording else "record a model that attends"
        raise wrong("site", site or "nothing", known, fix)
    return site if several and site else names[-1]


def cut_map(recording: "Recording", site: str, head: int | None, size: tuple[int, int]) -> AttentionCells:
    """Return one attention in at most so many cells, each of which is its largest weight."""
    from regard.inspect.draw.chapters import pool_labels

    weights, labels = recording[site], recording.labels.get(site)
    if head is not None and not 0 <= head < weights.heads:
        raise wrong("head", head, f"0 … {weights.heads - 1}", "count heads from 0, or name none for their mean")
    table = weights.downsample(head, size=size, how="max").float()
    rows = pool_labels(None if labels is None else labels.queries, weights.queries, table.shape[0])
    columns = pool_labels(None if labels is None else labels.keys, weights.keys, table.shape[1])
    return AttentionCells(table.numpy(), rows, columns)


def name_head(recording: "Recording", site: str, head: int | None, language: "Language" = "en") -> str:
    """Return which head is shown, or that it is the mean of all; nothing if there is only one."""
    from regard.inspect.draw.words import localize

    if recording[site].heads == 1:
        return ""
    return localize("mean of heads", language) if head is None else localize("head {}", language).format(head)


def print_map(recording: "Recording", site: str, head: int | None, console: Console) -> None:
    """Draw one attention in the terminal."""
    from regard.inspect.draw.terminal import describe_scale, render_heat_map

    cells, weights = cut_map(recording, site, head, TERMINAL), recording[site]
    table, title = cells.weights.tolist(), ", ".join(filter(None, (site, name_head(recording, site, head))))
    console.print(f"{title}; {describe_scale(table)}", markup=False)
    names = cells.columns or number_positions(weights.keys), cells.rows or number_positions(weights.queries)
    console.print(render_heat_map(table, *names, console.width), soft_wrap=True)


def draw_map(recording: "Recording", site: str, head: int | None, options: FigureOptions, name: str) -> Any:
    """Return a figure of one attention, titled by recording, site and head."""
    from regard.inspect.draw.alignment import draw_alignment
    from regard.inspect.draw.color_scale import ColorScale
    from regard.inspect.recording import Difference

    cells = cut_map(recording, site, head, PICTURE)
    scale = ColorScale("difference" if isinstance(recording[site], Difference) else "weights")
    title = options.choose_title(name, site, name_head(recording, site, head, options.language))
    labels = cells.columns, cells.rows
    return draw_alignment(cells.weights, *labels, title, scale=scale, language=options.language)


def draw_all_heads(recording: "Recording", site: str, options: FigureOptions, name: str) -> Any:
    """Return a figure of every head of the sites that fit, a row for each site."""
    from regard.inspect.draw.color_scale import ColorScale
    from regard.inspect.draw.head_grid import draw_head_grid
    from regard.inspect.recording import Difference

    sites = {one: recording[one] for one in recording.find_sites(site)}
    kind = "difference" if any(isinstance(weights, Difference) for weights in sites.values()) else "weights"
    layers = {
        one: [weights.downsample(head, size=SMALL, how="max").float().numpy() for head in range(weights.heads)]
        for one, weights in sites.items()
    }
    return draw_head_grid(layers, options.choose_title(name), scale=ColorScale(kind), language=options.language)


def number_positions(size: int) -> tuple[str, ...]:
    """Return names for positions that have none: their numbers, from 0."""
    return tuple(map(str, range(size)))
