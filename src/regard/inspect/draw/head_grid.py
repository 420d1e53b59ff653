"""Draw all heads side by side: a row for each layer, a column for each head."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_heads
from regard.inspect.draw.axes import add_title, check_table, paint
from regard.inspect.draw.colors import Kind
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.labels import shorten

SIZE = 1.15  # inches of one head


def draw_head_grid(layers: Mapping[str, Numbers] | Numbers, title: str = "", *, kind: Kind = "weights") -> Figure:
    """Draw every head of every layer, small and without tokens; layers may differ in heads, queries and keys.

    The weights of a layer are (head, query, key). Without a mapping from names to weights, they are those of one layer.
    """
    layers = layers if isinstance(layers, Mapping) else {"": layers}
    if not layers:
        raise wrong("layers", "none", "at least one", "record a model that attends")
    tables = {name: [check_table(head) for head in to_heads("layers", heads)] for name, heads in layers.items()}
    wide = max(map(len, tables.values()))
    letters = choose_fonts([*tables, title])
    figure = Figure(figsize=(1.4 + SIZE * wide, 0.7 + SIZE * len(tables)), layout="constrained")
    grid = figure.subplots(len(tables), wide, squeeze=False)
    picture = None
    for row, (name, heads) in zip(grid, tables.items(), strict=True):
        for head, axes in enumerate(row):
            axes.set(xticks=[], yticks=[])
            axes.set_visible(head < len(heads))
            if head < len(heads):
                picture = paint(axes, heads[head], kind)
        row[0].set_ylabel(letters.spell_missing(shorten(name)), rotation=0, ha="right", va="center", **letters.style)
    for head, axes in enumerate(grid[0]):
        axes.set_title(f"head {head + 1}", fontsize="small")
    if picture is not None:
        figure.colorbar(picture, ax=grid, shrink=0.6, aspect=40, label="weight" if kind == "weights" else "difference")
    add_title(figure, title, letters)
    return figure
