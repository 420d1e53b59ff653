"""A search that is watched is the search: its branches that end are what greedy, beam and sample return."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from small_models import encode_sources, make

from regard.errors import InputError
from regard.models import EncoderOutput
from regard.models.search import (
    ROOT,
    BeamOptions,
    Branch,
    Hypothesis,
    HypothesisScorer,
    SamplingOptions,
    SpecialTokens,
    beam_search,
    greedy_search,
    iterate_search,
    sample,
)

MARKS = SpecialTokens(begin=1, end=2, never=(0, 1))
SOME = ["bahdanau", "plain", "luong-feeding", "transformer", "transformer-alibi", "convolutional"]
PLANS: dict[str, BeamOptions | SamplingOptions | None] = {
    "greedy": None,
    "beam": BeamOptions(width=3, best=3, scoring=HypothesisScorer("wu", length_penalty=0.8)),
    "coverage": BeamOptions(width=3, best=3, scoring=HypothesisScorer("average", length_penalty=1.0, coverage=0.3)),
    "full": BeamOptions(width=4, best=4, stop="full"),
    "sample": SamplingOptions(temperature=1.5, count=11, seed=5),
}


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def one_of(encoded: EncoderOutput) -> EncoderOutput:
    return EncoderOutput(*(None if part is None else part[:1] for part in encoded))


def search(model: Any, encoded: EncoderOutput, plan: BeamOptions | SamplingOptions | None) -> list[Hypothesis]:
    if plan is None:
        return greedy_search(model.decoder, encoded, MARKS, 7, attention=True)
    if isinstance(plan, SamplingOptions):
        return sample(model.decoder, encoded, MARKS, 7, options=plan, attention=True)[0]
    return beam_search(model.decoder, encoded, MARKS, 7, options=plan, attention=True)[0]


def find_path(branches: dict[int, Branch], last: Branch) -> list[Branch]:
    """Return the branches from the root to one."""
    found = [last]
    while found[0].parent != ROOT:
        found.insert(0, branches[found[0].parent])
    return found


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("name", SOME)
def test_the_branches_that_end_are_what_the_search_returns(name: str, kind: str) -> None:
    model, plan = make(name), PLANS[kind]
    encoded = one_of(encode_sources(model))
    grown = [branch for step in iterate_search(model.decoder, encoded, MARKS, 7, options=plan) for branch in step]
    branches = {branch.number: branch for branch in grown}
    assert [branch.number for branch in grown] == list(range(len(grown)))
    ends = [branch for branch in grown if branch.score is not None]
    expected = search(model, encoded, plan)
    found = sorted(ends, key=lambda branch: -(branch.score or 0.0))[: len(expected)]
    for branch, one in zip(found, sorted(expected, key=lambda one: -one.score), strict=True):
        way = find_path(branches, branch)
        assert tuple(step.token for step in way) == (*one.tokens, MARKS.end)
        assert branch.score == pytest.approx(one.score, abs=1e-9)
        assert branch.log_prob == pytest.approx(one.log_prob, abs=1e-9)
        assert all(later.log_prob < step.log_prob for step, later in itertools.pairwise(way))
        if one.weights is None:
            assert all(step.weights is None for step in way)
        else:
            torch.testing.assert_close(torch.stack([step.weights for step in way]), one.weights, rtol=0, atol=1e-12)


def test_each_step_is_seen_before_the_next_is_computed() -> None:
    model, calls = make("transformer"), 0
    plain = model.decoder.advance

    def count_calls(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(*arguments)

    model.decoder.advance = count_calls  # type: ignore[method-assign]
    steps = iterate_search(model.decoder, one_of(encode_sources(model)), MARKS, 7, options=BeamOptions(width=2))
    for expected in (1, 2):
        next(steps)
        assert calls == expected
        assert not torch.is_inference_mode_enabled()


def test_only_one_sentence_is_watched() -> None:
    model = make("bahdanau")
    with pytest.raises(InputError, match="encoded: got 3 sentences, expected one to be watched; fix: watch one after"):
        next(iterate_search(model.decoder, encode_sources(model), MARKS, 7))
