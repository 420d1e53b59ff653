"""`regard list`: the catalog."""

from rich.table import Table
from rich.text import Text

from regard.cli.output import open_console


def show(family: str | None = None) -> None:
    """Show the catalog, by family, in English and Chinese.

    Parameters
    ----------
    family
        Only this one: score, bias, mask, normalizer, aggregate, layer, encoder, decoder, search, preset or task.
    """
    from regard.cli.descriptions import describe_family, select_families
    from regard.cli.formulas import render_formulas

    console = open_console()
    for name in select_families(family):
        table = Table(title=name, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", no_wrap=True)
        table.add_column("part", no_wrap=True)
        table.add_column("what it is · 说明", overflow="fold")
        for entry in describe_family(name):
            meaning = "\n".join(filter(None, (render_formulas(entry.summary), entry.chinese)))
            table.add_row(Text(entry.name, "bold"), entry.part, Text(meaning))
        console.print(table, "", sep="\n")
