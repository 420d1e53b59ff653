"""The four ways to learn where to look, on scenes, against the expectation over every way of looking."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import InputError
from regard.models import Encoded
from regard.models.decoders.glancing import READINGS
from regard.tasks import kit
from regard.tasks.captioning.captioning import regions_of
from regard.tasks.captioning.config import Learning
from regard.tasks.captioning.expectation import expected, reading_as
from regard.tasks.captioning.learning import drawn
from regard.training import Part

QUERY, KEY = "decoder.reader.attention.projections.query.weight", "encoder.project.weight"
SMALL = {"data.scenes": 30, "model.size": 7, "hidden": 11, "width": 13, "channels": "5,6,7", "score": "scaled-dot"}


@pytest.fixture(scope="module")
def scenes() -> tuple[Any, Tensor, Tensor]:
    """A captioner in float64 with weights far from zero, two scenes, and the first two words of each."""
    values = {name: str(value) for name, value in SMALL.items()}
    task = kit("captioning").task(kit("captioning").configured("reinforce", (), values))
    torch.manual_seed(3)
    model = task.model().double().train()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.6)
    batch = next(iter(task.epoch(0, Part())))
    return model, batch.source[:2].double(), batch.target[:2, :3]


def estimate(model: Any, source: Tensor, tokens: Tensor, copies: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean over draws of the log-likelihood, and of the gradient by REINFORCE."""
    encoded = model.encode(source, regions_of(model, source))
    wide, said = (
        Encoded(*(part.repeat_interleave(copies, 0) for part in encoded[:3])),
        tokens.repeat_interleave(copies, 0),
    )
    taught = model.decoder.teach(said[:, :-1], wide)
    logs = model.decoder.output(taught.vectors).log_softmax(-1).gather(-1, said[:, 1:, None])[..., 0]
    loss = -logs.sum()
    if taught.draw is not None and taught.draw.log_prob is not None:
        loss = loss + drawn(taught, logs.detach(), torch.ones_like(logs, dtype=torch.bool), Learning(bonus=0.0))
    return logs.detach().sum() / copies, {name: -grad / copies for name, grad in gradients(model, loss).items()}


def gradients(model: Any, loss: Tensor) -> dict[str, Tensor]:
    parameters = dict(model.named_parameters())
    names = [QUERY, KEY]
    return dict(zip(names, torch.autograd.grad(loss, [parameters[name] for name in names]), strict=True))


def test_reinforce_is_unbiased_on_scenes(scenes: tuple[Any, Tensor, Tensor]) -> None:
    model, source, tokens = scenes
    total = expected(model, source, tokens).sum()
    exact = gradients(model, total)
    torch.manual_seed(5)
    rounds = [estimate(model, source, tokens, 1500) for _ in range(6)]
    assert torch.stack([found for found, _ in rounds]).mean() == pytest.approx(float(total.detach()), rel=0.02)
    for name, wanted in exact.items():
        several = torch.stack([grads[name] for _, grads in rounds])
        error = several.std(0).norm() / len(several) ** 0.5
        assert (several.mean(0) - wanted).norm() < 3 * error, name
        assert error < 0.2 * wanted.norm(), name


@pytest.mark.parametrize("name", ["gumbel", "gumbel-straight", "straight-through", "soft"])
def test_the_others_climb_where_the_expectation_does(name: str, scenes: tuple[Any, Tensor, Tensor]) -> None:
    """Biased, as they are known to be: each points into the half-space in which the expectation grows."""
    model, source, tokens = scenes
    exact = gradients(model, expected(model, source, tokens).sum())
    torch.manual_seed(6)
    with reading_as(model, READINGS[name]()):
        _, found = estimate(model, source, tokens, 400 if name.startswith("gumbel") else 1)
    for part, wanted in exact.items():
        assert torch.nn.functional.cosine_similarity(found[part].flatten(), wanted.flatten(), dim=0) > 0.2, part


def test_too_many_ways_of_looking_are_refused(scenes: tuple[Any, Tensor, Tensor]) -> None:
    model, source, tokens = scenes
    with pytest.raises(InputError, match="got 16 regions and 4 words, expected at most 5000 ways of looking"):
        expected(model, source, torch.cat([tokens, tokens[:, 1:]], 1))
