"""What hard attention estimates, computed: the expectation over every way of looking, where these are few enough.

With R regions and T words there are R^T ways, so this is for checking estimators on the first words of small grids.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch

from regard.algebra.aggregates import Choice, Reading
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Distribution, Float, Int, Tensor
from regard.errors import wrong
from regard.models import Encoded, Model, Taught
from regard.models.decoders.glancing import Glancing
from regard.models.encoders.grid import GridEncoder
from regard.tasks.captioning.captioning import seen

MOST = 5000  # ways of looking


class Told(Reading):
    """Looks where it is told, with the probability that it would have looked there by itself."""

    def __init__(self, places: Iterator[Int[Tensor, " row"]]) -> None:
        super().__init__()
        self.places = places

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> Choice:
        place = next(self.places)[:, None, None, None]
        picked = torch.zeros_like(weights).scatter(-1, place, 1.0)
        return Choice(picked, weights.gather(-1, place)[..., 0].log())


@contextmanager
def reading_as(model: Model[Any], reading: Reading) -> Iterator[None]:
    """The model with another reading, for as long as it takes."""
    reader = cast(Glancing, model.decoder.reader)
    before, reader.reading = reader.reading, reading
    try:
        yield
    finally:
        reader.reading = before


def expected(model: Model[Any], source: Tensor, tokens: Int[Tensor, "batch longer"]) -> Float[Tensor, " batch"]:
    r"""Of each image, the expected log-likelihood of its words, with a gradient.

    $$ \sum_s p(s \mid x) \log p(y \mid s, x), \qquad p(s \mid x) = \prod_t w_{t s_t} $$

    over all $s$, one region for each word. Xu et al. 2015, eq. 10: what REINFORCE's gradient is an estimate of.
    `tokens` begin with a start token.
    """
    regions, steps = cast(GridEncoder, model.encoder).regions, tokens.shape[1] - 1
    if regions**steps > MOST:
        got = f"{regions} regions and {steps} words"
        raise wrong("tokens", got, f"at most {MOST} ways of looking", "give the first words only")
    paths = torch.tensor(list(itertools.product(range(regions), repeat=steps)), device=source.device)
    with reading_as(model, Told(iter(paths.repeat(len(source), 1).unbind(1)))):
        taught, logs = spoken(model, source, tokens, len(paths))
    if taught.draw is None or taught.draw.log_prob is None:
        raise wrong("model", "soft or no attention", "hard attention, in training", "build it with attention=reinforce")
    shares = taught.draw.log_prob.sum(1).exp() * logs.sum(1)
    each: Tensor = shares.unflatten(0, (len(source), -1)).sum(1)
    return each


def spoken(model: Model[Any], source: Tensor, tokens: Int[Tensor, "batch longer"], times: int) -> tuple[Taught, Tensor]:
    """The words of each image said so many times in a row, with looks of their own each time: what came of it, and how
    likely each word was."""
    wide = Encoded(*(part.repeat_interleave(times, 0) for part in seen(model, source)[:3]))
    said = tokens.repeat_interleave(times, 0)
    taught = model.decoder.teach(said[:, :-1], wide)
    return taught, model.decoder.output(taught.vectors).log_softmax(-1).gather(-1, said[:, 1:, None])[..., 0]
