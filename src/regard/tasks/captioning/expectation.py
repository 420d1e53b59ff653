"""The expectation that hard attention estimates, computed over every path of attention, if these are few enough.

With R regions and T words there are R^T paths, so this is for checking estimators on the first words of small grids.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch

from regard.algebra.aggregates import Aggregate, AggregateResult
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Distribution, Float, Int, Tensor
from regard.errors import wrong
from regard.models import EncoderDecoder, EncoderOutput, TeacherForcingOutput
from regard.models.decoders.region_attention import RegionAttention
from regard.models.encoders.grid import GridEncoder
from regard.tasks.captioning.generation import encode_images

MAX_PATHS = 5000  # paths of attention


class ForcedAggregate(Aggregate):
    """Attends to given positions, with the probabilities that the weights give them."""

    def __init__(self, positions: Iterator[Int[Tensor, " row"]]) -> None:
        super().__init__()
        self.positions = positions

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        place = next(self.positions)[:, None, None, None]
        picked = torch.zeros_like(weights).scatter(-1, place, 1.0)
        return AggregateResult(picked, weights.gather(-1, place)[..., 0].log())


@contextmanager
def use_aggregate(model: EncoderDecoder[Any], aggregate: Aggregate) -> Iterator[None]:
    """Replace the aggregate of a captioner inside a `with` block."""
    attention = cast(RegionAttention, model.decoder.attention)
    before, attention.aggregate = attention.aggregate, aggregate
    try:
        yield
    finally:
        attention.aggregate = before


def compute_expected_log_likelihood(
    model: EncoderDecoder[Any], source: Tensor, tokens: Int[Tensor, "batch longer"]
) -> Float[Tensor, " batch"]:
    r"""Return the expected log-likelihood of the words of each image, with a gradient.

    $$ \sum_s p(s \mid x) \log p(y \mid s, x), \qquad p(s \mid x) = \prod_t w_{t s_t} $$

    over all $s$, one region for each word. Xu et al. 2015, eq. 10: what REINFORCE's gradient is an estimate of.
    `tokens` begin with a start token.
    """
    regions, steps = cast(GridEncoder, model.encoder).regions, tokens.shape[1] - 1
    if regions**steps > MAX_PATHS:
        got = f"{regions} regions and {steps} words"
        raise wrong("tokens", got, f"at most {MAX_PATHS} ways of looking", "give the first words only")
    paths = torch.tensor(list(itertools.product(range(regions), repeat=steps)), device=source.device)
    with use_aggregate(model, ForcedAggregate(iter(paths.repeat(len(source), 1).unbind(1)))):
        forced, logs = teacher_force_repeatedly(model, source, tokens, len(paths))
    if forced.sample is None or forced.sample.log_prob is None:
        raise wrong("model", "soft or no attention", "hard attention, in training", "build it with attention=reinforce")
    shares = forced.sample.log_prob.sum(1).exp() * logs.sum(1)
    each: Tensor = shares.unflatten(0, (len(source), -1)).sum(1)
    return each


def teacher_force_repeatedly(
    model: EncoderDecoder[Any], source: Tensor, tokens: Int[Tensor, "batch longer"], times: int
) -> tuple[TeacherForcingOutput, Tensor]:
    """Repeat the words of each image so many times, each with choices of its own, and return the decoder's output and
    the log-probability of each word."""
    wide = EncoderOutput(*(part.repeat_interleave(times, 0) for part in encode_images(model, source)[:3]))
    targets = tokens.repeat_interleave(times, 0)
    forced = model.decoder.teacher_force(targets[:, :-1], wide)
    return forced, model.decoder.output(forced.vectors).log_softmax(-1).gather(-1, targets[:, 1:, None])[..., 0]
