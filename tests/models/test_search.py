"""Every search on every decoder, against definitions: argmax, enumeration, and the probabilities of teacher forcing."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from small_models import CONFIGS, LENGTHS, B, S, V, W, draw_sources, encode_sources, make
from torch import Tensor

from regard.errors import InputError
from regard.models import EncoderDecoder, EncoderOutput, ModelConfig, build_model
from regard.models.search import (
    BeamOptions,
    Hypothesis,
    HypothesisScorer,
    SamplingOptions,
    SpecialTokens,
    beam_search,
    greedy_search,
    sample,
)

MARKS = SpecialTokens(begin=1, end=2, never=(0, 1))
FEW = 5  # words of the vocabulary that can be searched through: two of them are words
LIMIT = 4
SOME = ["bahdanau", "bahdanau-coverage", "plain", "luong-feeding", "transformer", "transformer-alibi", "convolutional"]


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def rescore(
    model: EncoderDecoder[Any], encoded: EncoderOutput, rows: list[int], targets: list[tuple[int, ...]]
) -> tuple[list[float], Tensor | None]:
    """Return the log-probabilities of complete targets by teacher forcing, and the weights of their steps."""
    longest = max(map(len, targets))
    given = torch.tensor([[MARKS.begin, *target, *[0] * (longest - len(target))] for target in targets])
    wanted = torch.tensor([[*target, MARKS.end, *[0] * (longest - len(target))] for target in targets])
    own = EncoderOutput(*(None if part is None else part[torch.tensor(rows)] for part in encoded))
    vectors, weights, _ = model.decoder.teacher_force(given, own)
    log_probs = model.decoder.output(vectors).log_softmax(-1).gather(2, wanted[..., None])[..., 0]
    real = torch.arange(longest + 1) <= torch.tensor([[len(target)] for target in targets])
    return torch.where(real, log_probs, 0.0).sum(1).tolist(), None if weights is None else weights.dense()


def check(model: EncoderDecoder[Any], encoded: EncoderOutput, lengths: Tensor, found: list[list[Hypothesis]]) -> None:
    """Check that probabilities and weights are those of teacher forcing."""
    rows = [row for row, own in enumerate(found) for _ in own]
    log_probs, weights = rescore(model, encoded, rows, [one.tokens for one in flat(found)])
    assert [one.log_prob for one in flat(found)] == pytest.approx(log_probs, abs=1e-9)
    for place, (row, one) in enumerate(zip(rows, flat(found), strict=True)):
        assert (one.weights is None) == (weights is None)
        if one.weights is not None and weights is not None:
            assert one.weights.shape == (len(one.tokens) + 1, lengths[row])
            expected = weights[place, : len(one.tokens) + 1, : lengths[row]]
            torch.testing.assert_close(one.weights, expected, rtol=0, atol=1e-9)


def flat(found: list[list[Hypothesis]]) -> list[Hypothesis]:
    return [one for own in found for one in own]


def few_words(name: str) -> EncoderDecoder[Any]:
    """Return a model of few words, whose endings are neither first nor last."""
    torch.manual_seed(5)
    model = build_model(CONFIGS[name], source=W, target=FEW).double().eval()
    for parameter in model.parameters():
        parameter += 0.3 * torch.randn_like(parameter)
    return model


def list_all_targets(limit: int) -> list[tuple[int, ...]]:
    words = [token for token in range(FEW) if token not in (MARKS.begin, MARKS.end, *MARKS.never)]
    return [target for length in range(limit + 1) for target in itertools.product(words, repeat=length)]


def test_scores_are_those_of_teacher_forcing(model: EncoderDecoder[Any]) -> None:
    encoded = encode_sources(model)
    found = beam_search(model.decoder, encoded, MARKS, 5, options=BeamOptions(width=3, best=3), attention=True)
    assert [len(own) for own in found] == [3] * B
    assert [one.score for one in flat(found)] == [one.log_prob for one in flat(found)]
    check(model, encoded, LENGTHS, found)


def test_greedy_is_the_argmax_of_teacher_forcing(model: EncoderDecoder[Any]) -> None:
    encoded, limit = encode_sources(model), 5
    found = greedy_search(model.decoder, encoded, MARKS, limit, attention=True)
    check(model, encoded, LENGTHS, [[one] for one in found])
    for row, one in enumerate(found):
        own = EncoderOutput(*(None if part is None else part[row : row + 1] for part in encoded))
        scores = model.decoder(torch.tensor([[MARKS.begin, *one.tokens]]), own)[0]
        scores[:, list(MARKS.never)] = float("-inf")
        best = scores.argmax(-1).tolist()
        assert best[: len(one.tokens)] == list(one.tokens)
        assert best[len(one.tokens)] == MARKS.end or len(one.tokens) == limit


def test_a_beam_of_one_is_greedy(model: EncoderDecoder[Any]) -> None:
    encoded = encode_sources(model)
    alone = beam_search(model.decoder, encoded, MARKS, 5, options=BeamOptions(width=1))
    best = greedy_search(model.decoder, encoded, MARKS, 5)
    assert [own[0].tokens for own in alone] == [one.tokens for one in best]
    assert [own[0].log_prob for own in alone] == pytest.approx([one.log_prob for one in best], abs=1e-9)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize(
    "scoring",
    [
        HypothesisScorer(),
        HypothesisScorer("wu", length_penalty=0.8),
        HypothesisScorer("average", length_penalty=1.0),
        HypothesisScorer("wu", length_penalty=0.5, coverage=0.3),
    ],
    ids=["plain", "wu", "average", "coverage"],
)
def test_a_wide_beam_is_exhaustive_search(name: str, scoring: HypothesisScorer) -> None:
    model = few_words(name)
    encoded, best = encode_sources(model), 4
    targets = list_all_targets(LIMIT)
    found = beam_search(model.decoder, encoded, MARKS, LIMIT, options=BeamOptions(len(targets), best, scoring=scoring))
    for row, own in enumerate(found):
        log_probs, weights = rescore(model, encoded, [row] * len(targets), targets)
        scored = []
        for place, target in enumerate(targets):
            looked = None if weights is None else weights[place, : len(target) + 1, : LENGTHS[row]]
            scored.append((score(log_probs[place], len(target) + 1, looked, scoring), target))
        expected = sorted(scored, reverse=True)[:best]
        assert [one.tokens for one in own] == [target for _, target in expected]
        assert [one.score for one in own] == pytest.approx([value for value, _ in expected], abs=1e-9)


def score(log_prob: float, steps: int, weights: Tensor | None, scoring: HypothesisScorer) -> float:
    """Wu et al. 2016, eq. 14, as it stands."""
    divisor = ((5 + steps) / 6 if scoring.kind == "wu" else steps) ** scoring.length_penalty
    covered = 0.0
    if scoring.coverage and weights is not None:
        covered = scoring.coverage * float(weights.sum(0).clamp(1e-10, 1).log().sum())
    return log_prob / divisor + covered


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize(
    "scoring",
    [HypothesisScorer("wu", length_penalty=1.0), HypothesisScorer("average", length_penalty=1.0)],
    ids=["wu", "average"],
)
def test_the_exact_stop_changes_nothing(monkeypatch: pytest.MonkeyPatch, name: str, scoring: HypothesisScorer) -> None:
    model = few_words(name)
    encoded, plan = encode_sources(model), BeamOptions(width=3, best=2, scoring=scoring)
    early = beam_search(model.decoder, encoded, MARKS, 12, options=plan)
    monkeypatch.setattr(
        HypothesisScorer, "bound_score", lambda self, log_probs, limits: torch.full_like(log_probs, float("inf"))
    )
    late = beam_search(model.decoder, encoded, MARKS, 12, options=plan)
    assert [one.tokens for one in flat(early)] == [one.tokens for one in flat(late)]
    assert [one.score for one in flat(early)] == pytest.approx([one.score for one in flat(late)])


@pytest.mark.parametrize("name", SOME)
def test_the_exact_stop_is_early(name: str) -> None:
    """Without a length penalty nothing that follows can help: the search ends long before the limit."""
    model, calls = few_words(name), 0
    model.decoder.output.bias[MARKS.end] += 3.0
    plain = model.decoder.advance

    def count_calls(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(*arguments)

    model.decoder.advance = count_calls  # type: ignore[method-assign]
    beam_search(model.decoder, encode_sources(model), MARKS, 500, options=BeamOptions(width=2))
    assert 0 < calls < 100


@pytest.mark.parametrize("stop", ["exact", "full"])
def test_batch_and_padding_change_nothing(name: str, stop: Any) -> None:
    if stop == "full" and name not in SOME:
        return
    model = make(name)
    plan, limit = (
        BeamOptions(width=3, best=2, stop=stop, scoring=HypothesisScorer(length_penalty=0.6)),
        torch.tensor([6, 2, 4]),
    )
    whole = beam_search(model.decoder, encode_sources(model), MARKS, limit, options=plan, attention=True)
    order = torch.tensor([2, 1])
    encoded = model.encode(draw_sources()[order, :5], LENGTHS[order])
    moved = beam_search(model.decoder, encoded, MARKS, limit[order], options=plan, attention=True)
    check_alike(moved, [whole[row] for row in order.tolist()])


def search_full_by_hand(
    model: EncoderDecoder[Any], encoded: EncoderOutput, row: int, limit: int, plan: BeamOptions
) -> list[tuple[int, ...]]:
    """Search by the definition of `stop="full"` with lists, until there are as many endings as the beam is wide."""
    own = EncoderOutput(*(None if part is None else part[row : row + 1] for part in encoded))
    words = [token for token in range(FEW) if token not in (MARKS.end, *MARKS.never)]
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, tuple[int, ...]]] = []
    for step in range(limit + 1):
        going, ends = [], []
        for total, said in live:
            after = model.decoder(torch.tensor([[MARKS.begin, *said]]), own)[0, -1].log_softmax(-1)
            going += [(total + float(after[word]), (*said, word)) for word in words if step < limit]
            ends.append((total + float(after[MARKS.end]), said))
        live = sorted(going, reverse=True)[: plan.width]
        least = sorted([*live, *ends], reverse=True)[: plan.width][-1]
        done += [(total / plan.scoring.compute_divisor(step + 1), said) for total, said in ends if total >= least[0]]
        if len(done) >= plan.width or not live:
            break
    return [said for _, said in sorted(done, reverse=True)[: plan.best]]


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("name", ["bahdanau", "transformer"])
def test_a_full_beam_ends_when_as_many_have_ended_as_it_is_wide(name: str, width: int) -> None:
    model, limit = few_words(name), 7
    encoded = encode_sources(model)
    plan = BeamOptions(width=width, best=width, stop="full", scoring=HypothesisScorer("average", length_penalty=1.0))
    late = BeamOptions(width=width, best=width, scoring=plan.scoring)
    differ = 0
    for _ in range(3):  # from endings at once to endings at the limit, where stopping late finds the same ones
        found = beam_search(model.decoder, encoded, MARKS, limit, options=plan)
        expected = [search_full_by_hand(model, encoded, row, limit, plan) for row in range(B)]
        assert [[one.tokens for one in own] for own in found] == expected
        later = beam_search(model.decoder, encoded, MARKS, limit, options=late)
        differ += [[one.tokens for one in own] for own in later] != expected
        model.decoder.output.bias[MARKS.end] -= 0.5
    assert differ >= 2


def check_alike(left: list[list[Hypothesis]], right: list[list[Hypothesis]]) -> None:
    for one, other in zip(flat(left), flat(right), strict=True):
        assert one.tokens == other.tokens
        assert one.score == pytest.approx(other.score, abs=1e-9)
        assert (one.weights is None) == (other.weights is None)
        if one.weights is not None:
            torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-9)


def search_by_hand(
    model: EncoderDecoder[Any], encoded: EncoderOutput, plan: BeamOptions, limit: int
) -> tuple[list[tuple[float, tuple[int, ...]]], int]:
    """Beam search of one sentence with lists, that stops when `width` hypotheses are complete; and its steps."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    complete: list[tuple[float, tuple[int, ...]]] = []
    for steps in range(limit + 1):
        ends, going = [], []
        for log_prob, said in live:
            row = model.decoder(torch.tensor([[MARKS.begin, *said]]), encoded)[0, -1].log_softmax(-1).tolist()
            ends.append((log_prob + row[MARKS.end], said))
            words = [token for token in range(FEW) if token not in (MARKS.end, *MARKS.never)]
            going += [(log_prob + row[token], (*said, token)) for token in words if steps < limit]
        live = sorted(going, reverse=True)[: plan.width]
        best = sorted(live + ends, reverse=True)[: plan.width]
        complete += [(score(own, steps + 1, None, plan.scoring), said) for own, said in ends if (own, said) in best]
        if len(complete) >= plan.width or not live:
            break
    return sorted(complete, reverse=True)[: plan.best], steps + 1


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("width", [2, 3, 6])
def test_a_full_beam_stops_when_as_many_are_complete_as_it_is_wide(width: int) -> None:
    model, limit = few_words("bahdanau"), 8
    plan = BeamOptions(width, min(2, width), stop="full", scoring=HypothesisScorer("average", length_penalty=1.0))
    counted, advance = [0], model.decoder.advance

    def count(*arguments: Any) -> Any:
        counted[0] += 1
        return advance(*arguments)

    model.decoder.advance = count  # type: ignore[method-assign]
    whole = encode_sources(model)
    for row in range(B):
        encoded = EncoderOutput(*(None if part is None else part[row : row + 1] for part in whole))
        expected, steps = search_by_hand(model, encoded, plan, limit)
        counted[0] = 0
        found = beam_search(model.decoder, encoded, MARKS, limit, options=plan)[0]
        assert counted[0] == steps
        assert [one.tokens for one in found] == [said for _, said in expected]
        assert [one.score for one in found] == pytest.approx([own for own, _ in expected], abs=1e-9)


@pytest.mark.parametrize("name", SOME)
def test_many_sentences_of_many_lengths(name: str) -> None:
    """Sentences finish one after another and are removed; the others go on as if alone."""
    model, count = few_words(name), 19
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(1, S + 1, (count,), generator=generator)
    source = torch.randint(W, (count, S), generator=generator)
    limit = torch.randint(1, 24, (count,), generator=generator)
    plan = BeamOptions(width=4, best=2, scoring=HypothesisScorer("average", length_penalty=1.0))
    encoded = model.encode(source, lengths)
    found = beam_search(model.decoder, encoded, MARKS, limit, options=plan, attention=True)
    check(model, encoded, lengths, found)
    assert all(len(one.tokens) <= limit[row] for row, own in enumerate(found) for one in own)
    last = slice(count - 1, count)
    alone = model.encode(source[last, : lengths[-1]], lengths[last])
    check_alike(beam_search(model.decoder, alone, MARKS, limit[last], options=plan, attention=True), [found[-1]])


def test_what_must_not_be_said_is_not_said() -> None:
    model = make("transformer")
    model.decoder.output.bias[[0, 1]] += 50.0
    encoded = encode_sources(model)
    found = [*flat(beam_search(model.decoder, encoded, MARKS, 5)), *greedy_search(model.decoder, encoded, MARKS, 5)]
    found += flat(sample(model.decoder, encoded, MARKS, 5, options=SamplingOptions(count=3)))
    assert not {token for one in found for token in one.tokens} & {0, 1, MARKS.end}


def test_samples_follow_the_distribution() -> None:
    """Of many draws of the first token, each has its share, and only the best are drawn where that is asked."""
    model, count = make("transformer"), 500
    encoded = encode_sources(model)
    first = model.decoder(torch.full((B, 1), MARKS.begin), encoded)[:, 0]
    for temperature, top in ((1.0, 0), (0.5, 0), (1.3, 4)):
        plan = SamplingOptions(temperature, top, count, seed=3)
        found = sample(model.decoder, encoded, MARKS, 1, options=plan)
        allowed = first.clone()
        allowed[:, list(MARKS.never)] = float("-inf")
        if top:
            allowed = allowed.masked_fill(allowed < allowed.topk(top).values[:, -1:], float("-inf"))
        shares = (allowed / temperature).softmax(-1)
        for own, expected in zip(found, shares, strict=True):
            said = torch.tensor([one.tokens[0] if one.tokens else MARKS.end for one in own])
            drawn = torch.bincount(said, minlength=V) / count
            deviation = (expected * (1 - expected) / count).sqrt()
            assert (drawn - expected).abs().le(5 * deviation + 1e-9).all()


def test_samples_have_their_own_probability_and_do_not_depend_on_the_batch(model: EncoderDecoder[Any]) -> None:
    encoded, plan = encode_sources(model), SamplingOptions(count=2, seed=9)
    names = torch.tensor([12, 5, 70])
    found = sample(model.decoder, encoded, MARKS, 4, options=plan, streams=names, attention=True)
    check(model, encoded, LENGTHS, found)
    order = torch.tensor([1, 2, 0])
    moved = model.encode(draw_sources()[order], LENGTHS[order])
    again = sample(model.decoder, moved, MARKS, 4, options=plan, streams=names[order], attention=True)
    check_alike(again, [found[row] for row in order.tolist()])
    other = sample(model.decoder, encoded, MARKS, 4, options=SamplingOptions(count=2, seed=10), streams=names)
    assert [one.tokens for one in flat(other)] != [one.tokens for one in flat(found)]


def test_no_room_means_the_end_at_once(model: EncoderDecoder[Any]) -> None:
    encoded = encode_sources(model)
    ended = [[one] for one in greedy_search(model.decoder, encoded, MARKS, 0, attention=True)]
    for found in (beam_search(model.decoder, encoded, MARKS, 0, attention=True), ended):
        assert all(one.tokens == () for one in flat(found))
        check(model, encoded, LENGTHS, found)


def test_an_empty_batch_finds_nothing() -> None:
    model = make("bahdanau")
    none = EncoderOutput(*(None if part is None else part[:0] for part in encode_sources(model)))
    assert beam_search(model.decoder, none, MARKS, 5) == []
    assert greedy_search(model.decoder, none, MARKS, 5) == []


def test_messages() -> None:
    with pytest.raises(InputError, match="width: got 0, expected at least 1; fix: use 1 for greedy search, 5 for"):
        BeamOptions(width=0)
    with pytest.raises(InputError, match=r"best: got 6, expected 1 … width=5; fix: widen the beam, or ask for fewer"):
        BeamOptions(best=6)
    with pytest.raises(
        InputError, match=r"temperature: got 0\.0, expected a number above 0; fix: use greedy search for 0"
    ):
        SamplingOptions(temperature=0.0)
    with pytest.raises(InputError, match="never: got 2, expected tokens other than the end; fix: leave the end token"):
        SpecialTokens(1, 2, (2,))
    with pytest.raises(InputError, match=r"length: got -1\.0, expected at least 0; fix: use 0 for no length penalty"):
        HypothesisScorer(length_penalty=-1.0)
    with pytest.raises(InputError, match="limit: got -1, expected at least 0; fix: allow some tokens before the end"):
        beam_search(make("bahdanau").decoder, encode_sources(make("bahdanau")), MARKS, -1)


def test_config_is_a_value() -> None:
    assert ModelConfig() == ModelConfig()
    assert BeamOptions() == BeamOptions()
