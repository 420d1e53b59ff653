"""Soft and hard reading behind a gate: definitions, search, and the gradient of the expectation."""

import itertools
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from regard.algebra.aggregates import Aggregate, AggregateResult
from regard.algebra.pairs import Pairs
from regard.inspect.observe import observe
from regard.layers import Attention
from regard.layers.projections import Projections, build_linear
from regard.models import BeamOptions, EncoderOutput, SpecialTokens, beam_search, greedy_search
from regard.models.decoders.recurrent import BahdanauDecoder
from regard.models.decoders.region_attention import AGGREGATES, RegionAttention
from regard.models.embedding import TokenEmbedding
from regard.tasks.captioning.config import CaptioningTraining
from regard.tasks.captioning.loss import compute_reinforce_loss, doubly_stochastic_penalty

B, R, W, H, V = 2, 3, 5, 7, 11  # images, regions, width, hidden, words
MARKS = SpecialTokens(begin=2, end=3, never=(0, 1, 2))


def build_decoder(reading: Aggregate | None = None, *, gated: bool = True) -> BahdanauDecoder:
    torch.manual_seed(4)
    attention = Attention(Projections(query=build_linear(H, W, bias=False), key=build_linear(W, W)))
    reader = RegionAttention(attention, query=H, width=W, aggregate=reading, gated=gated)
    words = TokenEmbedding(torch.nn.Embedding(V, W))
    cells = torch.nn.LSTM(2 * W, H)
    made = BahdanauDecoder(words, cells, reader, build_linear(W, V), summary=W).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.9)
    return made


def draw_encoded() -> EncoderOutput:
    generator = torch.Generator().manual_seed(9)
    states = torch.randn(B, R, W, generator=generator, dtype=torch.float64)
    return EncoderOutput(states, torch.tensor([R, R]), states.mean(1))


def test_soft_reading_is_the_formula() -> None:
    reader, given = build_decoder().attention, draw_encoded()
    query = torch.randn(B, H, dtype=torch.float64)
    looked = reader.attend_step(query, reader.begin(given))
    projections = reader.attention.projections
    scores = torch.einsum("bd,bjd->bj", projections.query(query), projections.key(given.states)) / W**0.5
    weights = scores.softmax(-1)
    beta = torch.sigmoid(query @ reader.gate.weight[0] + reader.gate.bias)
    expected = beta[:, None] * torch.einsum("bj,bjd->bd", weights, given.states)
    assert torch.allclose(looked.context, expected, atol=1e-12)
    assert torch.allclose(looked.weights.dense(), weights, atol=1e-12)
    assert looked.sample is None


@pytest.mark.parametrize("name", AGGREGATES)
def test_stepping_is_teacher_forcing_and_many_looks_are_one_look_each(name: str) -> None:
    made, given = build_decoder(AGGREGATES[name]()).eval(), draw_encoded()
    tokens = torch.tensor([[2, 5, 7, 4], [2, 9, 5, 6]])
    taught, state = made.teacher_force(tokens, given), made.begin(given)
    for place, token in enumerate(tokens.unbind(1)):
        taken = made.advance(token, state)
        state = taken.state
        assert torch.allclose(taken.vector, taught.vectors[:, place], atol=1e-12)
    queries = torch.randn(B, 4, H, dtype=torch.float64)
    often = made.attention.attend_all(queries, given)
    each = [made.attention.attend_step(query, made.attention.begin(given)).context for query in queries.unbind(1)]
    assert torch.allclose(often.contexts, torch.stack(each, 1), atol=1e-12)


@pytest.mark.parametrize("name", ["reinforce", "gumbel-straight", "straight-through"])
def test_hard_reading_takes_one_region_and_outside_training_the_best(name: str) -> None:
    made, given = build_decoder(AGGREGATES[name](), gated=False), draw_encoded()
    taught = made.train().teacher_force(torch.tensor([[2, 5, 7], [2, 9, 5]]), given)
    picked = taught.weights.dense()
    assert torch.allclose(picked.amax(-1), torch.ones(B, 3, dtype=torch.float64))
    assert torch.allclose(taught.sample.soft_weights.sum(-1), torch.ones(B, 3, dtype=torch.float64))
    again = made.eval().teacher_force(torch.tensor([[2, 5, 7], [2, 9, 5]]), given)
    assert torch.equal(again.weights.dense().argmax(-1), again.sample.soft_weights.argmax(-1))
    assert again.sample.log_prob is None


def test_each_hypothesis_of_a_beam_carries_its_own_weights() -> None:
    made, given = build_decoder().eval(), draw_encoded()
    for own in beam_search(made, given, MARKS, 4, options=BeamOptions(3, 3), attention=True):
        for one in own:
            tokens = torch.tensor([[2, *one.tokens]] * B)
            rows = made.teacher_force(tokens, given).weights.dense()
            assert min((rows[b] - one.weights).abs().max() for b in range(B)) < 1e-12
    assert greedy_search(made, given, MARKS, 4, attention=True)[0].weights.shape[1] == R


def log_likelihood(made: BahdanauDecoder, tokens: Tensor, given: EncoderOutput) -> tuple[Tensor, Tensor]:
    """Return the log-likelihood of each caption, and the log-probability of the regions it attended to."""
    taught = made.teacher_force(tokens[:, :-1], given)
    logs = made.output(taught.vectors).log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    return logs, taught.sample.log_prob


class ScriptedAggregate(Aggregate):
    """Looks where it is told, with the probability that it would have looked there by itself."""

    path: ClassVar[tuple[int, ...]] = ()
    step: ClassVar[int] = 0

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        place = self.path[ScriptedAggregate.step]
        ScriptedAggregate.step += 1
        picked = torch.zeros_like(weights)
        picked[..., place] = 1
        return AggregateResult(picked, weights[..., place].log())


def exact_gradient(tokens: Tensor, given: EncoderOutput, names: list[str]) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the expectation of the log-likelihood over every path of regions, and its gradient."""
    made = build_decoder(ScriptedAggregate()).train()
    total = torch.zeros((), dtype=torch.float64)
    for path in itertools.product(range(R), repeat=tokens.shape[1] - 1):
        ScriptedAggregate.path, ScriptedAggregate.step = path, 0
        logs, chosen = log_likelihood(made, tokens, given)
        total = total + (chosen.sum(1).exp() * logs.sum(1)).sum()
    parameters = dict(made.named_parameters())
    grads = torch.autograd.grad(total, [parameters[name] for name in names])
    return total.detach(), dict(zip(names, grads, strict=True))


GATE, QUERY = "attention.gate.weight", "attention.attention.projections.query.weight"


def test_reinforce_is_the_gradient_of_the_exact_expectation() -> None:
    """Many draws at once: the mean of the estimates lies within the errors of the mean of what all paths give."""
    tokens, given, copies, rounds = torch.tensor([[2, 5, 7], [2, 9, 5]]), draw_encoded(), 2000, 4
    total, exact = exact_gradient(tokens, given, [QUERY, GATE])
    made = build_decoder(AGGREGATES["reinforce"]()).train()
    parameters = dict(made.named_parameters())
    wide = EncoderOutput(*(part.repeat_interleave(copies, 0) for part in given[:3]))
    learning = CaptioningTraining(bonus=0.0)
    found: dict[str, list[Tensor]] = {QUERY: [], GATE: []}
    reached = []
    for seed in range(rounds):
        torch.manual_seed(seed)
        said = tokens.repeat_interleave(copies, 0)
        taught = made.teacher_force(said[:, :-1], wide)
        logs = made.output(taught.vectors).log_softmax(-1).gather(-1, said[:, 1:, None])[..., 0]
        loss = -logs.sum() + compute_reinforce_loss(
            taught, logs.detach(), torch.ones_like(logs, dtype=torch.bool), learning
        )
        for name, grad in zip(found, torch.autograd.grad(loss, [parameters[name] for name in found]), strict=True):
            found[name].append(-grad / copies)
        reached.append(logs.detach().sum() / copies)
    assert torch.stack(reached).mean() == pytest.approx(float(total), rel=0.02)
    for name, grads in found.items():
        mean, wanted = torch.stack(grads).mean(0), exact[name]
        assert (mean - wanted).norm() < 0.06 * wanted.norm(), name


def test_without_the_drawn_term_the_gradient_is_not_that_of_the_expectation() -> None:
    """What the test above is worth: the term that REINFORCE adds is most of the query's gradient."""
    tokens, given = torch.tensor([[2, 5, 7], [2, 9, 5]]), draw_encoded()
    _, exact = exact_gradient(tokens, given, [QUERY])
    made = build_decoder(AGGREGATES["reinforce"]()).train()
    wide = EncoderOutput(*(part.repeat_interleave(500, 0) for part in given[:3]))
    said = tokens.repeat_interleave(500, 0)
    logs = made.output(made.teacher_force(said[:, :-1], wide).vectors).log_softmax(-1).gather(-1, said[:, 1:, None])
    (partial,) = torch.autograd.grad(logs.sum() / 500, [dict(made.named_parameters())[QUERY]], allow_unused=True)
    missing = exact[QUERY] if partial is None else exact[QUERY] - partial
    assert missing.norm() > 0.3 * exact[QUERY].norm()


def measure_alignment(name: str, exact: Tensor, tokens: Tensor, given: EncoderOutput, copies: int = 1000) -> float:
    """Return the cosine between the mean estimate of the query's gradient and the exact one."""
    torch.manual_seed(1)
    reading = AGGREGATES[name](0.5) if name.startswith("gumbel") else AGGREGATES[name]()
    made = build_decoder(reading).train()
    wide, said = (
        EncoderOutput(*(part.repeat_interleave(copies, 0) for part in given[:3])),
        tokens.repeat_interleave(copies, 0),
    )
    logs = made.output(made.teacher_force(said[:, :-1], wide).vectors).log_softmax(-1).gather(-1, said[:, 1:, None])
    (found,) = torch.autograd.grad(logs.sum() / copies, [dict(made.named_parameters())[QUERY]])
    return float(torch.nn.functional.cosine_similarity(found.flatten(), exact.flatten(), dim=0))


def test_the_biased_estimators_point_the_right_way() -> None:
    """Gumbel and straight-through are no estimates of the expectation's gradient, but they climb."""
    tokens, given = torch.tensor([[2, 5, 7], [2, 9, 5]]), draw_encoded()
    _, exact = exact_gradient(tokens, given, [QUERY])
    angles = {name: measure_alignment(name, exact[QUERY], tokens, given) for name in ("gumbel", "gumbel-straight")}
    assert min(angles.values()) > 0.5, angles


def test_the_penalty_is_least_where_each_region_is_looked_at_once() -> None:
    real = torch.tensor([[True, True, True], [True, True, False]])
    once = torch.eye(3)[None].expand(2, -1, -1)
    assert doubly_stochastic_penalty(once[:1], real[:1]) == 0
    assert doubly_stochastic_penalty(once[1:], real[1:]) == 1  # the third look is padding: its region was not looked at


def test_what_is_read_is_seen() -> None:
    made, given = build_decoder().eval(), draw_encoded()
    tokens = torch.tensor([[2, 5, 7, 4], [2, 9, 5, 6]])
    with torch.no_grad(), observe(made, item=1) as recording:
        taught = made.teacher_force(tokens, given)
    [seen] = recording.stack_calls().values()
    assert taught.weights is not None
    assert torch.equal(seen.dense()[0], taught.weights.dense()[1])
