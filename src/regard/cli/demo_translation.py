"""`regard demo translation`: number words from English to French, with attention and without, side by side."""

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from regard.cli.figures import FigureOptions
from regard.cli.output import open_console
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.tasks.data import SentencePair
    from regard.tasks.translation import TranslationConfig, TranslationResult, Translator

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
SHORT = 60  # characters of the sentence whose alignment is drawn, at most


class DemoModel(NamedTuple):
    """One of the two models, and its translations of the test set."""

    translator: "Translator"
    found: "Sequence[TranslationResult]"
    seconds: float

    def find_exact(self, pairs: "Sequence[SentencePair]") -> list[bool]:
        """Return which translations are exact."""
        return [one.first.text == pair.target for one, pair in zip(self.found, pairs, strict=True)]


def run_translation_demo(seed: int, folder: Path | None, options: FigureOptions) -> None:
    """Train both at once, compare them on numbers that neither has seen, and draw an alignment."""
    from regard.tasks.data import open_text

    console = open_console()
    console.print("Numbers below a billion in words, English to French; no test number is trained on.")
    with nullcontext(folder) if folder else TemporaryDirectory(prefix="regard-demo-") as runs:
        configs = {name: configure_demo(kind, Path(runs) / kind, seed) for name, kind in MODELS.items()}
        seconds = train_models(configs, console)
        pairs = open_text(configs["attention"].data).tests["test"]
        models = {name: translate_test_set(config, pairs, seconds[name]) for name, config in configs.items()}
    console.print(build_accuracy_table(models, pairs), "")
    console.print(build_example_table(models, pairs), "")
    show_alignment(models["attention"], pairs, options, console)
    if folder is not None:
        run = folder / MODELS["attention"]
        console.print(f"now: regard translate {run}, or: regard show … 'ninety-seven', or: regard serve {run}")


def configure_demo(kind: str, folder: Path, seed: int) -> "TranslationConfig":
    """Return the configuration of one of the two models."""
    from regard.tasks import import_task

    values = SETTINGS | {"training.folder": folder, "training.seed": seed, "data.seed": seed}
    config: TranslationConfig = import_task("translation").configure(kind, (), values)
    return config


def train_models(configs: "Mapping[str, TranslationConfig]", console: Console) -> dict[str, float]:
    """Train each model in a process of its own and return the seconds that each took."""
    from regard.training.interrupt import hide_from_children

    context = multiprocessing.get_context("spawn")
    events, begun, seconds = context.Queue(), time.monotonic(), dict[str, float]()
    with hide_from_children():
        for name, config in configs.items():
            context.Process(target=train_in_process, args=(name, config, events), daemon=True).start()
    columns = TextColumn("{task.description:>14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[figures]}"), console=console) as bar:
        tasks = {name: bar.add_task(name, total=None, figures="") for name in configs}
        while len(seconds) < len(configs):
            name, event = events.get()
            if isinstance(event, RegardError):
                raise event
            if event["event"] == "finished":
                seconds[name] = time.monotonic() - begun
            bar.update(tasks[name], **describe_progress(event))
    return seconds


def train_in_process(name: str, config: "TranslationConfig", events: Any) -> None:
    """Train one model and send its events."""
    from regard.tasks import build_task
    from regard.training import event_to_json, train

    try:
        task = build_task(config, None)
        for event in train(task, task.config):
            events.put((name, event_to_json(event)))
    except RegardError as error:
        events.put((name, error))


def describe_progress(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the progress bar that an event changes."""
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


def translate_test_set(config: "TranslationConfig", pairs: "Sequence[SentencePair]", seconds: float) -> DemoModel:
    """Translate the test set greedily."""
    from regard.tasks.translation import TranslationSearchOptions, Translator

    translator = Translator.load(config, config.training.folder)
    found = translator.translate([pair.source for pair in pairs], TranslationSearchOptions(beam=1), attention=True)
    return DemoModel(translator, found, seconds)


def build_accuracy_table(models: Mapping[str, DemoModel], pairs: "Sequence[SentencePair]") -> Table:
    """Return a table of the share of exact translations."""
    from regard.models import count_parameters

    table = Table(f"{len(pairs)} held-out numbers", "exact", "parameters", "seconds", box=None, pad_edge=False)
    for name, one in models.items():
        exact = 100 * sum(one.find_exact(pairs)) / len(pairs)
        parameters = count_parameters(one.translator.model)
        table.add_row(name, f"[bold]{exact:.1f} %[/bold]", f"{parameters:,}", f"{one.seconds:.0f}")
    return table


def build_example_table(models: Mapping[str, DemoModel], pairs: "Sequence[SentencePair]") -> Table:
    """Return a table of the first sentences of the test set with both translations."""
    table = Table("", "", box=None, pad_edge=False, show_header=False)
    rights = {name: one.find_exact(pairs) for name, one in models.items()}
    for place in range(min(SHOWN, len(pairs))):
        table.add_row("", f"[bold]{pairs[place].source}[/bold]")
        for name, one in models.items():
            mark = "[green]right[/green]" if rights[name][place] else "[red]wrong[/red]"
            table.add_row(f"{name} {mark}", one.found[place].first.text)
    return table


def show_alignment(one: DemoModel, pairs: "Sequence[SentencePair]", options: FigureOptions, console: Console) -> None:
    """Draw the alignment of the longest of the short sentences that are translated right."""
    from regard.inspect.draw.terminal import render_heat_map
    from regard.inspect.draw.words import localize
    from regard.tasks.translation.predictor import draw_attention

    right = [place for place, fine in enumerate(one.find_exact(pairs)) if fine and len(pairs[place].source) <= SHORT]
    place = max(right or [0], key=lambda place: len(pairs[place].source))
    source, best = one.found[place].source, one.found[place].first
    if best.weights is not None:
        console.print(render_heat_map(best.weights.tolist(), source, best.tokens, console.width), soft_wrap=True)
    if best.weights is not None and options.output is not None:
        title = options.choose_title(localize("where each word looked", options.language))
        options.save(draw_attention(best, source, title, options.language))
