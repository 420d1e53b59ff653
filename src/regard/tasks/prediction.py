"""What all trained models offer: evaluation, predictions with their attention, and loading of weights."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from regard.compute.notebook import build_bundle, render_html
from regard.errors import InputError, format_message, wrong
from regard.inspect.draw.chapters import Chapter, Regions, Spectrogram
from regard.inspect.draw.words import Language
from regard.inspect.recording import Recording
from regard.inspect.recording.explanation import CellExplanation
from regard.training import Training, read_safetensors, restore_weights
from regard.training.run_folder import format_resume_command
from regard.training.runtime import choose_device
from regard.training.tensors import check_shapes

WEIGHTS = "weights.safetensors"
HeldOutSplit = Literal["test", "validation"]
# What a prediction is asked for by other names, and its own.
OTHER_NAMES = {
    "weights": "attention attentions attention_weights attn attn_weights alignment alignments",
    "picture": "show plot figure fig image heatmap view display",
    "text": "output answer translation translations transcript caption label prediction result value",
}


class EvaluationReport(NamedTuple):
    """The evaluation of one set: the number of items, the metrics by name, and notes."""

    items: int
    metrics: Mapping[str, float]
    notes: Sequence[str] = ()


class LabeledWeights(NamedTuple):
    """Weights with a name for each row and column, for a terminal."""

    weights: Sequence[Sequence[float]]
    columns: Sequence[str]
    rows: Sequence[str]
    title: str = ""  # which attention this is: layer, head, from what to what

    def draw(self, title: str = "", language: Language = "en", names: tuple[str, str] = ("query", "key")) -> Any:
        """Return a figure of the weights; `names` are those of the rows and of the columns."""
        from regard.inspect.draw.alignment import draw_alignment

        table = np.array(self.weights)
        return draw_alignment(table, self.columns, self.rows, title, names=names, language=language)


class PictureMaker(Protocol):
    """Returns a matplotlib figure, with a title such as the name of the run above its own, in a language."""

    def __call__(self, title: str = "", language: Language = "en") -> Any: ...


class Prediction(NamedTuple):
    """The answer of a model to one input, and its attention.

    `text` is for people, `values` has the same for JSON. `map` is the attention for a terminal, `weights` the same as
    an array, `picture` a matplotlib figure of it, which `save` writes. A page shows the `recording`, or `map` if there
    is none, over the `medium`: the picture or sound whose parts are the columns.
    """

    text: str
    values: Mapping[str, Any]
    draw: PictureMaker
    map: LabeledWeights | None = None
    recording: Recording | None = None
    medium: Regions | Spectrogram | None = None

    @property
    def weights(self) -> Any:
        """The attention as an array with a row for each `map.rows` and a column for each `map.columns`; or none."""
        return None if self.map is None else np.array(self.map.weights)

    @property
    def picture(self) -> Any:
        """A matplotlib figure of the attention."""
        return self.draw()

    def save(self, path: str | Path, title: str = "", language: Language = "en", **options: Any) -> None:
        """Write the picture (.png, .svg, .pdf), or a page to look through with exact weights (.html).

        `title` stands above what the picture says itself; `options` are those of `save_figure`.
        """
        path = Path(path)
        if path.suffix.lower() in (".html", ".htm"):
            from regard.inspect.draw.report import render_report, save_report

            chapter = self.build_chapter()
            if chapter is None:
                expected = "one that has it"
                raise wrong("html", "a prediction without a table of weights", expected, "write --output picture.png")
            save_report(render_report([chapter], self.text), path)
            return
        from regard.inspect.draw.output import save_figure

        save_figure(self.draw(title, language), path, **options)

    def __str__(self) -> str:
        return self.text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = next((own for own, others in OTHER_NAMES.items() if name in others.split()), "")
        own = own or (f"values[{name!r}]" if name in self.values else "")
        fix = f"write prediction.{own}" if own else f"the rest is in prediction.values: {', '.join(self.values)}"
        expected = "text, weights, picture, save or values"
        raise AttributeError(format_message(f"prediction.{name}", "no such attribute", expected, fix))

    def __repr__(self) -> str:
        size = "" if self.map is None else f", weights {len(self.map.rows)} × {len(self.map.columns)}"
        return f"Prediction({self.text!r}{size})"

    def _repr_html_(self) -> str:
        return render_html(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Mapping[str, object]:
        return build_bundle(self)

    def explain(self, query: int, key: int, *, head: int = 0, site: str | None = None) -> CellExplanation:
        """Return what made one weight: the terms of its score, what was added, how the row was normalized.

        Of the first attention of `recording`, or of the `site` that is named.
        """
        recording = self.recording
        if not recording:
            raise wrong("explain", "a prediction whose attention was not kept", "one that has it", "see `weights`")
        if site is not None and site not in recording:
            raise wrong("site", repr(site), f"one of {', '.join(recording)}", "name one of those")
        return recording[next(iter(recording)) if site is None else site].explain(head, query, key)

    def build_chapter(self) -> Chapter | None:
        """Return what a page shows of it, or none if there are no weights to show."""
        recording = self.recording
        if recording is None and self.map is not None:
            weights, columns, rows, _ = self.map
            recording = Recording.from_weights({"attention": weights}, queries=rows, keys=columns)
        return None if recording is None else Chapter(self.text, recording, medium=self.medium)


@runtime_checkable
class Predictor(Protocol):
    """A trained model with its task: what `TaskDefinition.load` returns."""

    model: Any

    def evaluate(self, data: str | None, split: HeldOutSplit) -> Mapping[str, EvaluationReport]:
        """Return a report for each held-out set: of other data if some are named, else of the run's own."""

    def predict(self, words: Sequence[str]) -> Prediction:
        """Return the answer to what was typed (a text, a file, a file and a question); to an example if nothing was."""


def no_attention_error(what: str, at: str, preset: str) -> InputError:
    """Return the error for a model without attention, naming a preset that has some.

    >>> str(no_attention_error("reader", "its question", "bidaf")).partition("; ")[0]
    'show: got a reader without attention, expected one that looks at its question'
    """
    fix = f"choose a run of another preset, such as {preset}"
    return wrong("show", f"a {what} without attention", f"one that looks at {at}", fix)


def load_model(build: Callable[[], nn.Module], training: Training, run: Path, weights: Path | None) -> nn.Module:
    """Return the model that `build` makes, with the best weights of a run or others, on its device.

    A configuration can ask for a model of any size, so it is built without memory first and compared with the file.
    """
    file = find_weights(run, weights)
    with torch.device("meta"):
        check_shapes(build(), file)
    model = build()
    restore_weights(model, read_safetensors(file), file)
    return model.to(choose_device(training.device)).eval()


def find_weights(run: Path, weights: Path | None) -> Path:
    """Return the file of the best weights of a run; or of others, by path or by name in the run folder."""
    if weights is None:
        if not (run / WEIGHTS).is_file():
            raise wrong(
                "run", f"{run}, which has no weights yet", "at least one checkpoint", format_resume_command(run)
            )
        return run / WEIGHTS
    for path in (weights, run / weights, run / f"{weights}.safetensors"):
        if path.is_file():
            return path
    there = ", ".join(sorted(path.stem for path in run.glob("*.safetensors"))) or "none"
    raise wrong("weights", f"no {weights}", f"a file, or one of those in {run}: {there}", "check the name")
