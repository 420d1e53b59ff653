"""`regard demo translation`: number words from English to French, with attention and without, side by side."""

import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.tasks.data import Pair
    from regard.tasks.translation import Translated, TranslationConfig, Translator

MODELS = {"attention": "bahdanau", "no attention": "rnn-plain"}
SETTINGS = {
    "data.digits": 9,
    "measure.most": 200,
    "training.threads": 1,  # two models on two cores
    "training.optimizer.rate": 6e-3,
    "training.schedule.warmup": 40,
    "training.stop.epochs": 12,
    "training.stop.target": None,  # both take as many steps
    "training.keep": 1,
}
SHOWN = 4  # examples
SHORT = 60  # signs of the sentence whose alignment is drawn, at most


class Trained(NamedTuple):
    """One of the two models, and its translations of the test set."""

    translator: "Translator"
    found: "Sequence[Translated]"
    seconds: float

    def right(self, pairs: "Sequence[Pair]") -> list[bool]:
        """Which translations are exact."""
        return [one.first.text == pair.target for one, pair in zip(self.found, pairs, strict=True)]


def translation(output: Path, seed: int, folder: Path | None) -> None:
    """Trains both at once, compares them on numbers that neither has seen, and draws where the one looked."""
    from regard.tasks.data import open_text

    console = Console(highlight=False)
    console.print("Numbers below a billion in words, English to French; no test number is trained on.")
    with placed(folder) as place:
        configs = {name: configured(kind, place / kind, seed) for name, kind in MODELS.items()}
        seconds = trained(configs, console)
        pairs = open_text(configs["attention"].data).tests["test"]
        models = {name: tested(config, pairs, seconds[name]) for name, config in configs.items()}
    console.print(accuracies(models, pairs), "")
    console.print(examples(models, pairs), "")
    picture(models["attention"], pairs, output, console)
    if folder is not None:
        run = folder / MODELS["attention"]
        console.print(f"now: regard translate {run}, or: regard show … 'ninety-seven', or: regard serve {run}")


@contextmanager
def placed(folder: Path | None) -> Iterator[Path]:
    """The folder for the runs, or one that is removed afterwards."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory(prefix="regard-demo-") as temporary:
        yield Path(temporary)


def configured(kind: str, folder: Path, seed: int) -> "TranslationConfig":
    from regard.tasks.translation import changed, preset

    return changed(preset(kind), SETTINGS | {"training.folder": folder, "training.seed": seed, "data.seed": seed})


def trained(configs: "Mapping[str, TranslationConfig]", console: Console) -> dict[str, float]:
    """Trains each in a process of its own; returns how many seconds each took."""
    context = multiprocessing.get_context("spawn")
    events, begun, seconds = context.Queue(), time.monotonic(), dict[str, float]()
    for name, config in configs.items():
        context.Process(target=work, args=(name, config, events), daemon=True).start()
    columns = TextColumn("{task.description:>14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[figures]}"), console=console) as bar:
        tasks = {name: bar.add_task(name, total=None, figures="") for name in configs}
        while len(seconds) < len(configs):
            name, event = events.get()
            if isinstance(event, RegardError):
                raise event
            if event["event"] == "finished":
                seconds[name] = time.monotonic() - begun
            bar.update(tasks[name], **shown(event))
    return seconds


def work(name: str, config: "TranslationConfig", events: Any) -> None:
    """What each process does: trains, and sends what happens."""
    from regard.tasks.translation import task
    from regard.training import record, train

    try:
        for event in train(task(config), config):
            events.put((name, record(event)))
    except RegardError as error:
        events.put((name, error))


def shown(event: Mapping[str, Any]) -> dict[str, Any]:
    """What an event changes about a bar."""
    match event["event"]:
        case "started":
            return {"total": event["steps"]}
        case "evaluated":
            exact, step = event["metrics"]["exact"], event["step"]
            return {"figures": f"{exact:.0f} % exact", "completed": step}
        case "stepped":
            return {"completed": event["step"]}
        case "finished":
            return {"completed": event["step"], "total": event["step"]}
    return {}


def tested(config: "TranslationConfig", pairs: "Sequence[Pair]", seconds: float) -> Trained:
    """Translates the test set greedily."""
    from regard.tasks.translation import Search, Translator

    translator = Translator.load(config, config.training.folder)
    found = translator.translate([pair.source for pair in pairs], Search(beam=1), attention=True)
    return Trained(translator, found, seconds)


def accuracies(models: Mapping[str, Trained], pairs: "Sequence[Pair]") -> Table:
    """How many translations of the test set are exact."""
    from regard.models import count_parameters

    table = Table(f"{len(pairs)} held-out numbers", "exact", "parameters", "seconds", box=None, pad_edge=False)
    for name, one in models.items():
        exact = 100 * sum(one.right(pairs)) / len(pairs)
        parameters = count_parameters(one.translator.model)
        table.add_row(name, f"[bold]{exact:.1f} %[/bold]", f"{parameters:,}", f"{one.seconds:.0f}")
    return table


def examples(models: Mapping[str, Trained], pairs: "Sequence[Pair]") -> Table:
    """The first few of the test set, as both models say them."""
    table = Table("", "", box=None, pad_edge=False, show_header=False)
    rights = {name: one.right(pairs) for name, one in models.items()}
    for place in range(min(SHOWN, len(pairs))):
        table.add_row("", f"[bold]{pairs[place].source}[/bold]")
        for name, one in models.items():
            mark = "[green]right[/green]" if rights[name][place] else "[red]wrong[/red]"
            table.add_row(f"{name} {mark}", one.found[place].first.text)
    return table


def picture(one: Trained, pairs: "Sequence[Pair]", output: Path, console: Console) -> None:
    """Draws where the model looked, for the longest of the short sentences it got right."""
    from regard.draw.alignment import alignment, save
    from regard.draw.terminal import heat_map

    right = [place for place, fine in enumerate(one.right(pairs)) if fine and len(pairs[place].source) <= SHORT]
    place = max(right or [0], key=lambda place: len(pairs[place].source))
    source, said = one.found[place].source, one.found[place].first
    if said.weights is not None:
        console.print(heat_map(said.weights.tolist(), source, said.tokens, console.width), soft_wrap=True)
        save(alignment(said.weights.numpy(), source, said.tokens, "where each word looked"), output)
        console.print(f"picture: {output}", markup=False)
