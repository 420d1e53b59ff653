"""Draw all heads side by side: a row for each layer, a column for each head."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_heads
from regard.inspect.draw.axes import Table, check_table, paint
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import SMALL, Sheet
from regard.inspect.draw.words import Language, localize

SMALLEST, LARGEST, ALL = 0.42, 1.1, 7.6  # inches of one head, and of all heads of a layer
BETWEEN, NUMBER = 0.06, 0.14  # inches between heads, and of the line of their numbers
LINE = 24  # signs of a line of a layer's name


def draw_head_grid(
    layers: Mapping[str, Numbers] | Numbers,
    title: str = "",
    *,
    scale: ColorScale | None = None,
    language: Language = "en",
) -> Figure:
    """Draw every head of every layer, small and without tokens; layers may differ in heads, queries and keys.

    The weights of a layer are (head, query, key). Without a mapping from names to weights, they are those of one layer.
    """
    layers = layers if isinstance(layers, Mapping) else {"": layers}
    if not layers:
        raise wrong("layers", "none", "at least one", "record a model that attends")
    tables = {name: [check_table(head) for head in to_heads("layers", heads)] for name, heads in layers.items()}
    scale = (scale or ColorScale()).fit(*(head for heads in tables.values() for head in heads))
    names = ("head", "weight" if scale.kind == "weights" else "difference", "rows are queries, columns are keys")
    heading, bar, note = (localize(name, language) for name in names)
    sheet = Sheet(choose_fonts([*tables, title, heading, bar, note], language))
    panels = draw_heads(sheet, tables, scale)
    row = Bbox.union([panel.get_position(original=True) for panel in panels])
    sheet.write(heading, (row.x0 + row.x1) / 2, 0.03 + NUMBER, ha="center", va="bottom")
    sheet.add_color_scale(panels[0].images[0], scale, bar, *panels)
    return sheet.finish(title, [note])


def draw_heads(sheet: Sheet, tables: Mapping[str, Sequence[Table]], scale: ColorScale) -> list[Axes]:
    """Draw a row of small maps for each layer, with numbers above the first row and names at the left."""
    step = min(LARGEST, max(SMALLEST, ALL / max(map(len, tables.values()))))
    panels = []
    for row, (name, heads) in enumerate(tables.items()):
        for head, table in enumerate(heads):
            panel = sheet.add_panel(head * step, -row * step, step - BETWEEN, step - BETWEEN)
            panel.set(xticks=[], yticks=[])
            paint(panel, table, scale)
            panels.append(panel)
            if head == 0:
                text, style = sheet.letters.spell_missing(break_name(name)), sheet.letters.style
                panel.set_ylabel(text, rotation=0, ha="right", va="center", fontsize=SMALL, **style)
    for head in range(max(map(len, tables.values()))):
        sheet.write(str(head), head * step + (step - BETWEEN) / 2, 0.03, ha="center", va="bottom")
    return panels


def break_name(name: str) -> str:
    """Return the name of a layer in lines, broken behind dots: it is whole, and leaves room for the heads.

    >>> break_name("encoder.layers.11.self_attention")
    'encoder.layers.11.\\nself_attention'
    """
    lines: Sequence[str] = [""]
    for part in name.replace(".", ".\n").split("\n"):
        lines = [*lines[:-1], lines[-1] + part] if len(lines[-1] + part) <= LINE or not lines[-1] else [*lines, part]
    return "\n".join(lines)
