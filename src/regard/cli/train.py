"""`regard train translation`: from text to a run folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from regard.cli.fields import Given, described, parsed, switches_of
from regard.cli.running import run
from regard.errors import wrong

USAGE = """Usage: regard train translation [TEXT …] [--preset NAME] [--config FILE] [--field value …]

Train a translator. TEXT is numbers or dates (embedded, endless), a folder with train.en, train.de, …, a table with a
tab between sentence and translation, or two aligned files; plain or gzip, UTF-8."""
OPTIONS = {
    "preset": "a model and how to train it: {presets}",
    "config": "a TOML file; its fields go before those of the preset, and flags before both",
    "nproc": "processes on this machine; under torchrun leave it out",
    "restarts": "times that processes which die are started again from the last checkpoint",
    "tensorboard": "also write curves for TensorBoard",
    "print-config": "print the configuration and do nothing",
    "help": "show this",
}
SWITCHES = {"help", "print_config", "tensorboard"}
Arguments = Annotated[str, Parameter(allow_leading_hyphen=True)]


def translation(*arguments: Arguments) -> None:
    """Train a translator."""
    from regard.tasks.translation import DEFAULT, PRESETS
    from regard.training import to_toml

    options = {name.replace("-", "_") for name in OPTIONS}
    given = parsed(["--help" if word == "-h" else word for word in arguments], options, SWITCHES | switches_of(DEFAULT))
    if "help" in given.options:
        show_help(PRESETS)
        return
    config = configured(given)
    if "print_config" in given.options:
        print(to_toml(config), end="")
        return
    run(config, resume=None, options=given.options)


def configured(given: Given) -> Any:
    """The preset, then what the file names, then what the flags name."""
    from regard.tasks.translation import changed, preset, text_of
    from regard.training.config import flattened, read_toml

    file = given.options.get("config")
    values = dict(flattened(read_toml(Path(file)))) if file else {}
    values |= given.fields
    if len(given.names) > 2:
        fix = "name the file of the sentences, then that of the translations"
        raise wrong("text", f"{len(given.names)} names", "a name, or two aligned files", fix)
    if given.names:
        values["data.text"] = ",".join(map(located, given.names))
    return changed(preset(given.options.get("preset"), text_of(values)), values)


def located(name: str) -> str:
    """A path that is still right when the run is resumed from another folder."""
    path = str(Path(name).resolve()) if Path(name).exists() else name
    return name if "," in path else path  # a comma stands between two files


def show_help(presets: Mapping[str, Any]) -> None:
    """The options, and every field of the configuration with its default and its meaning."""
    from regard.tasks.translation import DEFAULT

    console = Console(highlight=False)
    console.print(USAGE, markup=False)
    options = Table(box=None, pad_edge=False, title="\nOptions", title_justify="left", show_header=False)
    for name, meaning in OPTIONS.items():
        options.add_row(f"--{name}", meaning.format(presets=", ".join(presets)))
    console.print(options)
    fields = Table("field", "default", "", box=None, pad_edge=False, title="\nFields", title_justify="left")
    for field in described(DEFAULT):
        fields.add_row(f"--{field.name}", shown(field.value), field.meaning)
    console.print(fields)
    console.print("\nThe end of a name will do, and means the field nearest the top: --folder, --stop.steps.")


def shown(value: object) -> str:
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
