"""A plan in words, and what it costs."""

import pytest
import torch

from regard import (
    Additive,
    ALiBi,
    Argmax,
    Causal,
    FeatureDot,
    Full,
    Gaussian,
    Lengths,
    Parts,
    Relative,
    RowTotal,
    ScaledDot,
    Soft,
    Softmax,
    Sparsemax,
    Window,
    attend,
    make_plan,
)
from regard.algebra.parts import CallFacts
from regard.compute.backends import BACKENDS
from regard.compute.kernels import native
from regard.compute.lowering.cost import format_bytes
from regard.compute.planning import BackendName

FACTS = CallFacts((2, 3), 5, 7, 11, 13, grad=True)


def test_a_plan_says_what_becomes_of_each_piece_and_why() -> None:
    x = torch.randn(2, 3, 5, 11)
    plan = attend(x, x, x, score=Gaussian(), bias=ALiBi(3), mask=Causal(), normalizer=Softmax(0.5)).plan
    assert plan.explain() == (
        "backend sdpa, because it is a softmax of a dot product\n"
        "  score: a dot product with one more coordinate, because −‖q−k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2, "
        "and keys are centered\n"
        "  bias: one more coordinate of the keys, because under this mask a number for each key says the same\n"
        "  mask: the kernel's causal flag, because there are as many queries as keys\n"
        "  normalizer: the kernel's softmax, because temperature is a scale"
    )


def test_a_plan_names_what_kept_the_fused_kernel_away() -> None:
    x = torch.randn(2, 3, 5, 11)
    attended = attend(x, x, x, bias=Relative(3), mask=Lengths(torch.tensor(3)), aggregate=Argmax(), dropout=0.1)
    assert attended.plan.explain() == (
        "backend rows, because a fused kernel gives no gradient to a dense bias; "
        "blocks of whole rows bound the memory\n"
        "  score: itself, because the factor is the kernel's own scale\n"
        "  bias: added block by block, because the scores of a block are at hand\n"
        "  mask: a range of keys for each block of queries, because keys outside it are never read\n"
        "  normalizer: itself, on whole rows of a block, because a block holds all keys of its queries\n"
        "  aggregate: a pick from the weights of each row, because a hard aggregate needs them\n"
        "  dropout: noise addressed by pair, because a block recomputes what it drew and stores nothing"
    )


def test_a_plan_says_what_runs_when_the_library_comes_between_two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are remembered: what they depend on, here the library of another call, must be among the facts."""
    x, score = torch.randn(5, 4), Additive(4, 4, 3)
    for state, words in [
        ("", "too few to compile for"),
        ("loaded", "the compiled kernel is loaded"),
        ("no C++ compiler was found", "no C++ compiler was found"),
        ("", "too few to compile for"),
    ]:
        monkeypatch.setattr(native, "describe_state", lambda state=state: state)
        assert words in attend(x, x, x, score=score).plan.explain()


def test_a_plan_says_why_gradients_of_half_precision_are_computed_in_float32() -> None:
    x = torch.randn(5, 4, dtype=torch.float16)
    words = "precision: float32, because float16 has too few digits for the gradients of steep weights"
    assert words in attend(x, x, x, normalizer=Sparsemax()).plan.explain()
    with torch.no_grad():
        assert "precision" not in attend(x, x, x, normalizer=Sparsemax()).plan.explain()
    assert "precision" not in attend(x, x, x, normalizer=Sparsemax(), backend="eager").plan.explain()


@pytest.mark.parametrize(
    ("mask", "facts", "becomes"),
    [
        (Full(), FACTS, "none"),
        (Causal(), FACTS._replace(queries=1), "none"),
        (Causal(), FACTS._replace(queries=7), "the kernel's causal flag"),
        (Causal(), FACTS, "a table of pairs"),
        (Lengths(torch.tensor(3)), FACTS, "one row of the mask, shared by all queries"),
        (Window(before=1, after=1), FACTS, "a table of pairs"),
        (Window(before=1, after=1), FACTS._replace(keys=1000), "a range of keys for each block of queries"),
    ],
    ids=str,
)
def test_what_becomes_of_a_mask(mask: Full, facts: CallFacts, becomes: str) -> None:
    plan = make_plan(Parts(ScaledDot(), None, mask, Softmax(), Soft()), facts)
    assert next(step.becomes for step in plan.steps if step.piece == "mask") == becomes


@pytest.mark.parametrize(
    ("backend", "pairs"),
    [("eager", 6 * 4096 * 4096), ("sdpa", 6 * 4096 * 4096), ("local", 6 * 4096 * (101 + 101)), ("rows", None)],
)
def test_pairs_are_counted(backend: BackendName, pairs: int | None) -> None:
    """A window of 101 in blocks of 101 queries reads at most 202 keys for each block."""
    parts = Parts(ScaledDot(), None, Window(before=50, after=50), Softmax(), Soft())
    facts = FACTS._replace(queries=4096, keys=4096)
    cost = BACKENDS[backend].estimate_cost(parts, facts)
    assert cost.pairs == (pairs or 6 * 4096 * 202)
    assert cost.products == cost.pairs * (11 + 13)
    assert cost.table == 6 * 4096 * 4096 * 4


def test_linear_attention_forms_no_pair() -> None:
    parts = Parts(FeatureDot(), None, Full(), RowTotal(), Soft())
    cost = BACKENDS["linear"].estimate_cost(parts, FACTS)
    assert cost.pairs == 0
    assert cost.products == 6 * (5 + 7) * 11 * (13 + 1)


def test_memory_beyond_inputs_does_not_grow_with_the_square() -> None:
    parts = Parts(ScaledDot(), None, Full(), Sparsemax(), Soft())
    once, twice = (
        BACKENDS["rows"].estimate_cost(parts, FACTS._replace(queries=n, keys=n)).memory for n in (2**13, 2**14)
    )
    assert once == twice
    fused = [BACKENDS["sdpa"].estimate_cost(parts, FACTS._replace(queries=n, keys=n)).memory for n in (2**13, 2**14)]
    assert fused[1] == 2 * fused[0]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 kB"), (2**20, "1.0 MB"), (5 * 2**30, "5.0 GB")],
)
def test_bytes_in_words(count: int, words: str) -> None:
    assert format_bytes(count) == words
