"""Every estimator of hard attention against what it estimates: the gradient of the expectation over all paths.

On the first words of two scenes, with a captioner in float64 so small that all paths can be written out.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from regard.models.decoders.region_attention import AGGREGATES
from regard.tasks.captioning.config import CaptionerConfig, CaptioningData, CaptioningTraining, configure_for_scenes
from regard.tasks.captioning.expectation import compute_expected_log_likelihood, teacher_force_repeatedly, use_aggregate
from regard.tasks.captioning.loss import compute_reinforce_loss
from regard.tasks.registry import import_task
from regard.training import DataShare

SMALL = CaptionerConfig("reinforce", "scaled-dot", size=7, hidden=11, width=13, channels=(5, 6, 7))
INIT_STD = 0.6  # from zero, so that the weights of words differ
DRAWS = 20_000  # of each scene
ATTENTION_PREFIX = "decoder.attention.attention."  # the parameters that decide on attention alone


class GradientCase(NamedTuple):
    """A captioner, two scenes, and the first two words of each behind a start token."""

    model: Any
    source: Tensor
    tokens: Tensor

    @property
    def attention_parameters(self) -> list[Tensor]:
        """The parameters that decide on attention alone."""
        return [own for name, own in self.model.named_parameters() if name.startswith(ATTENTION_PREFIX)]


def build_case(seed: int) -> GradientCase:
    """Return the case of a seed."""
    config = replace(configure_for_scenes(), data=CaptioningData(scenes=30, held_out=1, seed=seed), model=SMALL)
    captioning = import_task("captioning").build_task(config)
    torch.manual_seed(seed)
    model = captioning.model().double().train()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=INIT_STD)
    batch = captioning.epoch(0, DataShare())[0]
    return GradientCase(model, batch.source[:2].double(), batch.target[:2, :3])


def compute_exact_objective(case: GradientCase) -> Tensor:
    """Return the expected log-likelihood of the words of both scenes."""
    return compute_expected_log_likelihood(case.model, case.source, case.tokens).sum()


def estimate_objective(case: GradientCase, draws: int) -> Tensor:
    """Return the mean objective over `draws` samples of each scene: its gradient is the estimate."""
    forced, logs = teacher_force_repeatedly(case.model, case.source, case.tokens, draws)
    everywhere = torch.ones_like(logs, dtype=torch.bool)
    mean: Tensor = (
        logs.sum() - compute_reinforce_loss(forced, logs.detach(), everywhere, CaptioningTraining(bonus=0.0))
    ) / draws
    return mean


def measure_gradient_agreement(name: str, seed: int) -> float:
    """Return the cosine between the gradient of an estimator and that of the exact expectation."""
    own = build_case(seed)
    wanted = flatten_tensors(torch.autograd.grad(compute_exact_objective(own), own.attention_parameters))
    torch.manual_seed(seed)
    with use_aggregate(own.model, AGGREGATES[name]()):
        found = flatten_tensors(torch.autograd.grad(estimate_objective(own, DRAWS), own.attention_parameters))
    return float(cosine_similarity(found, wanted, dim=0))


def flatten_tensors(tensors: tuple[Tensor, ...]) -> Tensor:
    """Return the numbers of all tensors as one vector."""
    return torch.cat([tensor.flatten() for tensor in tensors])
