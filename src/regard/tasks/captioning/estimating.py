"""Every way to learn where to look, against what it estimates: the gradient of the expectation over all ways to look.

On the first words of two scenes, with a captioner in float64 so small that all ways can be written out.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from regard.models.decoders.glancing import READINGS
from regard.tasks.captioning.config import CaptionerConfig, Images, Learning, for_scenes
from regard.tasks.captioning.expectation import expected, reading_as, spoken
from regard.tasks.captioning.learning import drawn
from regard.tasks.captioning.task import task
from regard.training import Part

SMALL = CaptionerConfig("reinforce", "scaled-dot", size=7, hidden=11, width=13, channels=(5, 6, 7))
FAR = 0.6  # from zero, so that looks differ
DRAWS = 20_000  # of each scene
LOOKING = "decoder.reader.attention."  # the parameters that decide on nothing but where to look


class Case(NamedTuple):
    """A captioner, two scenes, and the first two words of each behind a start token."""

    model: Any
    source: Tensor
    tokens: Tensor

    @property
    def looking(self) -> list[Tensor]:
        """What decides where to look."""
        return [own for name, own in self.model.named_parameters() if name.startswith(LOOKING)]


def case(seed: int) -> Case:
    """One of this seed."""
    config = replace(for_scenes(), data=Images(scenes=30, held_out=1, seed=seed), model=SMALL)
    captioning = task(config)
    torch.manual_seed(seed)
    model = captioning.model().double().train()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=FAR)
    batch = captioning.epoch(0, Part())[0]
    return Case(model, batch.source[:2].double(), batch.target[:2, :3])


def exact(case: Case) -> Tensor:
    """The expected log-likelihood of the words of both scenes."""
    return expected(case.model, case.source, case.tokens).sum()


def estimated(case: Case, draws: int) -> Tensor:
    """Of so many draws of each scene, the mean of what is made large: its gradient is the estimate."""
    taught, logs = spoken(case.model, case.source, case.tokens, draws)
    everywhere = torch.ones_like(logs, dtype=torch.bool)
    mean: Tensor = (logs.sum() - drawn(taught, logs.detach(), everywhere, Learning(bonus=0.0))) / draws
    return mean


def agreement(name: str, seed: int) -> float:
    """The cosine between the gradient that a way of learning follows and that of the exact expectation."""
    own = case(seed)
    wanted = flat(torch.autograd.grad(exact(own), own.looking))
    torch.manual_seed(seed)
    with reading_as(own.model, READINGS[name]()):
        found = flat(torch.autograd.grad(estimated(own, DRAWS), own.looking))
    return float(cosine_similarity(found, wanted, dim=0))


def flat(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])
