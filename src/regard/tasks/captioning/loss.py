"""The loss of a captioner: the words, the doubly stochastic penalty, and REINFORCE."""

from typing import Any, NamedTuple

import torch

from regard.algebra.aggregates import Baseline, reinforce
from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.models import EncoderDecoder, TeacherForcingOutput
from regard.models.kernels.cross_entropy import cross_entropy
from regard.tasks.captioning.config import CaptioningTraining
from regard.tasks.captioning.generation import encode_images


class CaptioningBatch(NamedTuple):
    """Images, and a caption of each between BEGIN and END."""

    source: Tensor
    target: Int[Tensor, "batch longest"]
    target_lengths: Int[Tensor, " batch"]


class CaptioningLoss(NamedTuple):
    """Sums over the words: the whole loss, which has a gradient, and the negative log-likelihood alone."""

    total: Float[Tensor, ""]
    negative_log_likelihood: Float[Tensor, ""]
    words: int


def compute_loss(model: EncoderDecoder[Any], batch: CaptioningBatch, learning: CaptioningTraining) -> CaptioningLoss:
    r"""Return the loss of *Show, Attend and Tell*.

    $$ L = -\log p(y \mid x) + \lambda \sum_i \Bigl(1 - \sum_t w_{ti}\Bigr)^2 $$

    with $w$ = the weights before anything is chosen and $\lambda$ = `learning.stochastic`. Xu et al. 2015, eq. 14.
    If attention is drawn, REINFORCE's term is added: `compute_reinforce_loss`.
    """
    prefix, steps = batch.target[:, :-1], batch.target_lengths - 1
    forced = model.decoder.teacher_force(prefix, encode_images(model, batch.source), steps)
    real = torch.arange(prefix.shape[1], device=prefix.device) < steps[:, None]
    output, wanted, vectors = model.decoder.output, batch.target[:, 1:][real], forced.vectors[real]
    words = cross_entropy(vectors, output.weight, output.bias, wanted, smoothing=learning.smoothing)
    total = words.total
    weights = get_soft_weights(forced)
    if weights is not None and learning.stochastic:
        total = total + learning.stochastic * doubly_stochastic_penalty(weights, real)
    if forced.sample is not None and forced.sample.log_prob is not None and model.training:
        with torch.no_grad():
            scores = torch.nn.functional.linear(vectors, output.weight, output.bias)
            logs = scores.log_softmax(-1).gather(-1, wanted[:, None])[:, 0]
            table = logs.new_zeros(prefix.shape).masked_scatter(real, logs)
        total = total + compute_reinforce_loss(forced, table, real, learning)
    return CaptioningLoss(total, words.negative_log_likelihood, len(wanted))


def get_soft_weights(forced: TeacherForcingOutput) -> Float[Tensor, "batch target source"] | None:
    """Return the weights before anything was chosen."""
    if forced.sample is not None:
        return forced.sample.soft_weights
    return None if forced.weights is None else forced.weights.dense()


def doubly_stochastic_penalty(
    weights: Float[Tensor, "batch target source"], real: Bool[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Return the squared distance of the summed weights of each region from 1."""
    received = (weights * real[..., None].to(weights.dtype)).sum(1)
    return (1 - received).square().sum()


def compute_reinforce_loss(
    forced: TeacherForcingOutput,
    logs: Float[Tensor, "batch target"],
    real: Bool[Tensor, "batch target"],
    learning: CaptioningTraining,
) -> Float[Tensor, ""]:
    r"""Return the loss of REINFORCE: for each choice, the rest of its caption against that of the other captions.

    $$ -\sum_t (R_t - b_t) \log p(s_t), \qquad R_t = \sum_{t' \ge t} \log p(y_{t'} \mid s_{\le t'}) $$

    with $b_t$ the mean of $R_t$ over the *other* captions that are as long: no choice changes its own baseline, so that
    the gradient is that of the expectation. Xu et al. 2015, eq. 11-12, with the batch in the place of their moving
    average: nothing has to be remembered between steps. `bonus` times the entropy keeps attention from settling early.
    """
    if forced.sample is None or forced.sample.log_prob is None:
        return logs.new_zeros(())
    rewards = logs.flip(1).cumsum(1).flip(1)
    inside = real.to(logs.dtype)
    others = (inside.sum(0) - 1).clamp_min(1)
    baseline = ((rewards * inside).sum(0) - rewards) / others
    alone = inside.sum(0) < 2
    advantage = torch.where(alone, 0.0, rewards - baseline)[real]
    choice = forced.sample.soft_weights[real]
    spread = -(choice * torch.where(choice > 0, choice, 1.0).log()).sum(-1)
    mean, _ = reinforce(
        forced.sample.log_prob[real], advantage, Baseline(batches=1), entropy=spread, bonus=learning.bonus
    )
    return mean * len(advantage)
