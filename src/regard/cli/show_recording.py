"""`regard show` of a recording: what Recording.save kept, in the terminal, as a picture or as a page."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from regard.cli.output import open_console
from regard.cli.show import choose_outputs
from regard.errors import find_nearest, wrong

if TYPE_CHECKING:
    from regard.inspect.recording import Recording

TERMINAL, PICTURE = (120, 240), (1000, 1000)  # cells at most


def show(
    recording: Path,
    site: str | None = None,
    *,
    head: int | None = None,
    output: Path | None = None,
    html: Path | None = None,
) -> None:
    """Show a saved recording.

    Parameters
    ----------
    recording
        The file, as Recording.save wrote it.
    site
        Which attention, by its name or a glob; the last one where none is named.
    head
        Which head, counted from 1; their mean where none is named.
    output
        A picture (.png, .svg, .pdf) or a page (.html) instead of the map in the terminal.
    html
        A page to look through: every attention and head of the recording.
    """
    from regard.inspect.recording import Recording

    output, html = choose_outputs(output, html)
    loaded, console = Recording.load(recording), open_console()
    if html is not None:
        from regard.inspect.draw.chapters import Chapter
        from regard.inspect.draw.report import render_report, save_report

        selected = loaded if site is None else loaded.select(choose_site(loaded, site, several=True))
        save_report(render_report([Chapter(recording.stem, selected)], recording.stem), html)
        console.print(f"page: {html}", markup=False)
        return
    draw(loaded, choose_site(loaded, site), head, output, console)


def choose_site(recording: "Recording", site: str | None, *, several: bool = False) -> str:
    """Return the name of the last site that fits; if several are allowed, the glob itself."""
    names = list(recording) if site is None else recording.find_sites(site)
    if not names:
        known = f"{len(recording)} names" if recording else "a recording that is not empty"
        fix = f"try '{find_nearest(site or '', recording)}'" if recording else "record a model that attends"
        raise wrong("site", site or "nothing", known, fix)
    return site if several and site else names[-1]


def draw(recording: "Recording", site: str, head: int | None, output: Path | None, console: Console) -> None:
    """Draw one attention as a picture or in the terminal; each cell of a long one is its largest weight."""
    from regard.inspect.draw.chapters import pool_labels
    from regard.inspect.recording import Difference

    weights, labels = recording[site], recording.labels.get(site)
    if head is not None and not 1 <= head <= weights.heads:
        raise wrong("head", head, f"1 … {weights.heads}", "count heads from 1, or name none for their mean")
    index = None if head is None else head - 1
    title = f"{site}, {'mean of heads' if head is None else f'head {head}'}" if weights.heads > 1 else site
    table = weights.downsample(index, size=TERMINAL if output is None else PICTURE, how="max").float()
    rows = pool_labels(None if labels is None else labels.queries, weights.queries, table.shape[0])
    columns = pool_labels(None if labels is None else labels.keys, weights.keys, table.shape[1])
    if output is None:
        from regard.inspect.draw.terminal import describe_scale, render_heat_map

        console.print(f"{title}; {describe_scale(table.tolist())}", markup=False)
        names = columns or number_positions(weights.keys), rows or number_positions(weights.queries)
        console.print(render_heat_map(table.tolist(), *names, console.width), soft_wrap=True)
        return
    from regard.inspect.draw.alignment import draw_alignment
    from regard.inspect.draw.color_scale import ColorScale
    from regard.inspect.draw.output import save_figure

    scale = ColorScale("difference" if isinstance(weights, Difference) else "weights")
    save_figure(draw_alignment(table.numpy(), columns, rows, title, scale=scale), output)
    console.print(f"picture: {output}", markup=False)


def number_positions(size: int) -> tuple[str, ...]:
    """Return names for positions that have none."""
    return tuple(map(str, range(1, size + 1)))
