"""Those that are compared at translating do the same work: as many parameters, tokens and steps."""

from collections.abc import Callable

import pytest
import torch

from benchmarks.claim import Contender
from benchmarks.contenders import beam_search, training
from benchmarks.contenders.beam_search import SearchProblem
from benchmarks.contenders.peer_modules import BlankModule, borrow
from benchmarks.contenders.text import BEGIN, END, PADDING, Batch, Text
from benchmarks.contenders.training import Update
from benchmarks.contenders.translators import Shape

SHAPES = {
    "transformer": Shape("transformer", vocabulary=211, size=24, layers=2, heads=3),
    "recurrent": Shape("recurrent", vocabulary=211, size=24),
}
# OpenNMT-py's recurrent model has half of our encoder, and its decoder reads half as much.
LEAST = {"transformer": 0.95, "recurrent": 0.6}


def build_if_installed(build: Callable[..., Contender], *arguments: object) -> Contender | None:
    """Return the contender, or None if its library is not installed: the worker has all of them."""
    try:
        return build(*arguments)
    except ImportError:
        return None


def list_builders(module: object, kind: str) -> list[Callable[..., Contender]]:
    names = ["plain", "joeynmt", "opennmt"] + ["marian"] * (kind == "transformer")
    return [getattr(module, name) for name in names if hasattr(module, name)]


@pytest.mark.parametrize("kind", SHAPES)
def test_models_are_as_large_as_ours(kind: str) -> None:
    update = Update(SHAPES[kind], Batch(60, vocabulary=211))
    ours = sum(leaf.numel() for leaf in training.ours(update).leaves)
    for build in list_builders(training, kind):
        contender = build_if_installed(build, update)
        if contender is not None:
            assert LEAST[kind] * ours <= sum(leaf.numel() for leaf in contender.leaves) <= 1.001 * ours, build.__name__


@pytest.mark.parametrize("kind", SHAPES)
def test_an_update_learns(kind: str) -> None:
    update = Update(SHAPES[kind], Batch(60, vocabulary=211))
    for build in [training.ours, *list_builders(training, kind)]:
        contender = build_if_installed(build, update)
        if contender is not None:
            before = [leaf.detach().clone() for leaf in contender.leaves]
            assert 4.0 < float(contender.forward()) < 8.0, build.__name__  # about the logarithm of the vocabulary
            assert not any(torch.equal(old, new) for old, new in zip(before, contender.leaves, strict=True))


@pytest.mark.parametrize("kind", SHAPES)
def test_searches_say_as_many_tokens(kind: str) -> None:
    task = SearchProblem(SHAPES[kind], Batch(60, vocabulary=211), steps=5)
    for build in [beam_search.ours, *list_builders(beam_search, kind)]:
        contender = build_if_installed(build, task)
        if contender is not None:
            with torch.no_grad():
                said = contender.forward()
            assert said.shape == (len(Text(task.batch).source), 5), build.__name__
            assert not bool((said[:, :-1] == END).any())


@pytest.mark.parametrize("alike", [False, True])
def test_a_batch_has_the_tokens_that_it_says(alike: bool) -> None:
    text = Text(Batch(997, vocabulary=31, alike=alike))
    assert 997 - 30 < text.tokens <= 997
    assert bool((text.target[:, 0] == BEGIN).all())
    for side, lengths in ((text.source, text.source_lengths), (text.target, text.target_lengths)):
        assert torch.equal((side != PADDING).sum(1), lengths)
        assert bool((side.gather(1, lengths[:, None] - 1) == END).all())
    spread = int(text.target_lengths.max() - text.target_lengths.min())
    assert spread > 10 if not alike else spread < 10


def test_what_is_borrowed_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(borrow.__globals__["UNRELATED"], "json", ("nowhere_to_be_found",))
    assert borrow("json.decoder").__name__ == "json.decoder"
    with pytest.raises(ImportError):
        __import__("nowhere_to_be_found")
    assert BlankModule("some").Anything.__name__ == "Anything"
