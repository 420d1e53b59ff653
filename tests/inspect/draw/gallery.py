"""Every figure function on Latin, Chinese, long (60 tokens), tiny (1 × 1) and many-headed (16) input.

`python -m tests.inspect.draw.gallery` draws the reference pictures again, after a change that is meant to be seen.
"""

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageFilter

from regard.inspect.draw import fonts
from regard.inspect.draw.alignment import draw_alignment
from regard.inspect.draw.arcs import draw_arcs
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.complexity import draw_complexity
from regard.inspect.draw.curves import Curve, draw_curves
from regard.inspect.draw.forecast import draw_forecast
from regard.inspect.draw.glimpses import draw_glimpses
from regard.inspect.draw.head_grid import draw_head_grid
from regard.inspect.draw.output import render_png
from regard.inspect.draw.overlay import draw_overlay
from regard.inspect.draw.positions import draw_positions
from regard.inspect.draw.regression import draw_regression
from regard.inspect.draw.seed_curves import draw_seed_curves
from regard.inspect.draw.spectrogram import draw_spectrogram
from regard.layers.positions import sinusoids

REFERENCES = Path(__file__).parent / "references"
SCALE = 0.36  # 36 pixels an inch: enough to see what is where
ENGLISH = ["the", "internationalization", "of", "seven", "quick", "foxes", "is", "over", "</s>"]
CHINESE = ["我", "喜欢", "注意力", "机制", "，", "因为", "Transformer", "很", "快", "。"]


class Sample(NamedTuple):
    """One input: tokens of queries and keys, heads, a title and a language."""

    queries: list[str]
    keys: list[str]
    heads: int
    title: str
    language: Any = "en"

    def make_weights(self) -> np.ndarray:
        """Return weights that follow the diagonal, sharper from head to head."""
        rows, columns = np.linspace(0, 1, len(self.queries)), np.linspace(0, 1, len(self.keys))
        sharpness = np.linspace(3, 40, self.heads)[:, None, None]
        scores = -sharpness * np.abs(rows[:, None] - columns) + np.cos(9 * columns + 5 * rows[:, None])
        weights: np.ndarray = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        return weights


SAMPLES = {
    "latin": Sample(ENGLISH[:5], ENGLISH, 2, "numbers-bahdanau · decoder.attention · head 1"),
    "chinese": Sample(CHINESE[:6], CHINESE, 2, "机器翻译 · 第 1 层 · 头 1", "zh"),
    "long": Sample((ENGLISH * 7)[:60], (ENGLISH * 7)[:60], 2, "sixty tokens"),
    "tiny": Sample(["a"], ["b"], 1, "a title that is wider than the only cell"),
    "heads": Sample(ENGLISH[:4], ENGLISH[4:], 16, "encoder.layers.11.self_attention · head 15"),
}

ODD_SAMPLES = {  # for figures with tokens beside their weights
    "row": Sample(["?"], [f"{ENGLISH[n % 3]}-of-a-very-long-name-{n}" for n in range(40)], 2, "forty keys · head 0"),
    "scripts": Sample(["👋🙂", "नमस्ते", "مرحبا"], ["दुनिया", "👋", "بالعالم", "café", "我"], 2, "café · مرحبا"),
}


def draw_layers(sample: Sample) -> Figure:
    layers = {"encoder.layers.0.self_attention": sample.make_weights(), "解码器.11": sample.make_weights()[:, ::-1]}
    return draw_head_grid(layers, sample.title, language=sample.language)


def draw_photo(sample: Sample) -> Figure:
    photo = np.linspace(0, 255, 24 * 32 * 3).reshape(24, 32, 3).astype(np.uint8)
    words = sample.queries[:12]
    weights = np.abs(np.sin(np.arange(len(words) * 16) ** 1.5)).reshape(len(words), 16) ** 4
    return draw_overlay(photo, weights, words, title=sample.title, language=sample.language)


def draw_digit(sample: Sample) -> Figure:
    picture = np.add.outer(np.arange(8), np.arange(8)) / 14
    weights = np.abs(np.sin(np.arange(2 * sample.heads * 16))).reshape(2, sample.heads, 4, 4)
    gates = np.linspace(0, 1, 2 * sample.heads).reshape(2, sample.heads)
    return draw_glimpses(picture, weights, gates, sample.title, language=sample.language)


def draw_sound(sample: Sample) -> Figure:
    values = np.sin(np.outer(np.linspace(1, 3, 12), np.arange(80) / 4))
    return draw_spectrogram(
        values, sample.make_weights()[0], sample.queries, 1.6, sample.title, language=sample.language
    )


def draw_encoding(sample: Sample) -> Figure:
    table = sinusoids(max(2, len(sample.keys)), 2 * sample.heads).numpy()
    return draw_positions(table, sample.title, language=sample.language)


def draw_fit(sample: Sample) -> Figure:
    known, new = np.linspace(0, 5, len(sample.keys)), np.linspace(0, 5, len(sample.queries))
    weights = sample.make_weights()[0]
    uniform = np.full_like(weights, 1 / len(known))
    fits = {
        "average": (uniform @ np.sin(known), uniform),
        "gaussian": (weights @ np.sin(known), weights),
        "learned": (np.sin(new), weights**2),
    }
    points = known, np.sin(known) + 0.1 * np.cos(17 * known)
    return draw_regression(points, new, np.sin(new), fits, "x", sample.title, language=sample.language)


def draw_costs(sample: Sample) -> Figure:
    lengths = [16 * 2**power for power in range(max(2, min(7, len(sample.keys))))]
    powers = {"convolution": 1.0, "recurrence": 1.5, "self-attention": 2.0}
    costs = {
        name: {
            "seconds": [1e-5 * length**power for length in lengths],
            "operations": [1e3 * length**power for length in lengths],
            "longest path": [1 + length / 8 for length in lengths],
            "steps in a row": [1.0 for _ in lengths],
        }
        for name, power in powers.items()
    }
    return draw_complexity(lengths, costs, costs, sample.title, language=sample.language)


def draw_trainings(sample: Sample) -> Figure:
    steps = list(range(1, 10 * len(sample.keys) + 1, 10))
    runs = {}
    for run in range(sample.heads):
        falling = [3 / (1 + 0.05 * (run + 1) * step) for step in steps]
        loss = {"training": Curve(steps, falling), "validation": Curve(steps[::2], [1.1 * one for one in falling[::2]])}
        rate = {"training": Curve(steps, [min(step / 50, 1) * 1e-3 for step in steps])}
        runs[f"{sample.keys[0]}-transformer-{run}"] = {
            "loss": loss,
            "BLEU": {"validation": Curve(steps, [40 - 10 * one for one in falling])},
            "learning rate": rate,
        }
    return draw_curves(runs, sample.title, language=sample.language)


def draw_series(sample: Sample) -> Figure:
    known = np.sin(np.add.outer(np.arange(len(sample.keys) + 1) / 3, np.arange(min(3, len(sample.queries)))))
    names = sample.queries[: known.shape[1]]
    return draw_forecast(known, known[:4] / 2, names, sample.title, language=sample.language)


def draw_comparison(sample: Sample) -> Figure:
    lengths = [2**power for power in range(min(7, len(sample.keys) + 1))]
    rows = {
        f"{sample.keys[place]};{quantity} {length}": [90 / (1 + place + length / 9) + seed for seed in range(3)]
        for place in range(min(4, len(sample.keys)))
        for quantity in ("right, %", "error")
        for length in lengths
    }
    return draw_seed_curves(
        rows, {"right, %": lengths, "error": lengths}, "length", sample.title, language=sample.language
    )


FIGURES: dict[str, Callable[[Sample], Figure]] = {
    "alignment": lambda sample: draw_alignment(
        sample.make_weights()[-1], sample.keys, sample.queries, sample.title, language=sample.language
    ),
    "difference": lambda sample: draw_alignment(
        sample.make_weights()[-1] - sample.make_weights()[0],
        sample.keys,
        sample.queries,
        sample.title,
        scale=ColorScale("difference"),
        language=sample.language,
    ),
    "arcs": lambda sample: draw_arcs(
        sample.make_weights()[-1], sample.queries, sample.keys, sample.title, language=sample.language
    ),
    "head_grid": draw_layers,
    "overlay": draw_photo,
    "glimpses": draw_digit,
    "spectrogram": draw_sound,
    "positions": draw_encoding,
    "regression": draw_fit,
    "forecast": draw_series,
    "complexity": draw_costs,
    "curves": draw_trainings,
    "seed_curves": draw_comparison,
}

ODD_FIGURES = ("alignment", "arcs", "overlay", "forecast", "curves")
CASES = [(name, kind, sample) for name in FIGURES for kind, sample in SAMPLES.items()]
CASES += [(name, kind, sample) for name in ODD_FIGURES for kind, sample in ODD_SAMPLES.items()]


def rasterize(figure: Figure) -> Image.Image:
    """Return a figure as a small picture."""
    return Image.open(BytesIO(render_png(figure, SCALE))).convert("RGB")


def compare(picture: Image.Image, reference: Image.Image) -> tuple[float, float]:
    """Return how far two pictures differ: on average, and the share of spots that differ clearly (0 … 1 each).

    Both are blurred, so that a letter may be one pixel wider, but must be there.
    """
    if max(abs(a - b) for a, b in zip(picture.size, reference.size, strict=True)) > 3:
        return 1.0, 1.0
    blur = ImageFilter.GaussianBlur(1.5)
    first = np.asarray(picture.resize(reference.size).filter(blur), dtype=np.float64)
    gap = np.abs(first - np.asarray(reference.filter(blur), dtype=np.float64)).max(-1) / 255
    return float(gap.mean()), float((gap > 0.25).mean())


def hide_system_fonts() -> None:
    """Leave the fonts of matplotlib and of the extra `zh`, so that pictures are the same on every machine."""
    fonts.findSystemFonts = list  # type: ignore[attr-defined]


if __name__ == "__main__":
    hide_system_fonts()
    REFERENCES.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or list(FIGURES)
    for name, kind, sample in CASES:
        if name in wanted:
            picture = rasterize(FIGURES[name](sample)).quantize(64, method=Image.Quantize.MEDIANCUT)
            picture.save(REFERENCES / f"{name}-{kind}.png", optimize=True)
    print(f"{sum(path.stat().st_size for path in REFERENCES.iterdir()):,} bytes")
