"""`regard list`: the catalog."""

from rich.console import Console
from rich.table import Table


def show(family: str | None = None) -> None:
    """Show the catalog, by family.

    Parameters
    ----------
    family
        Only this one: score, bias, mask, normalizer or aggregate.
    """
    from regard.cli.descriptions import describe_family, select_families

    console = Console()
    for name in select_families(family):
        table = Table("name", "part", "what it is", title=name, title_justify="left", box=None, pad_edge=False)
        for entry in describe_family(name):
            table.add_row(f"[bold]{entry.name}[/bold]", entry.part, entry.summary)
        console.print(table, "")
