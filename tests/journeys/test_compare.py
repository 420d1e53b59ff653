"""`regard compare` and `regard show positions`: measured beside the formulas, and an identity that is checked."""

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.compute.timing import Spread
from regard.inspect.draw.ranges import draw_ranges
from regard.inspect.draw.seed_curves import draw_seed_curves
from regard.models.complexity import LayerCost, build_curve, estimate_exponent, measure_cost, measure_longest_path
from regard.models.layer_kinds import KERNEL, RADIUS, SelfAttention, build_layers
from regard.tasks import comparison_measures, noisy_retrieval, norm_depths, norm_lengths, relevant_item
from regard.tasks.comparison import Claim, compare_variants, describe_findings
from regard.tasks.known_comparisons import COMPARISONS, ITEMS, SHARPNESS
from regard.tasks.next_vector import plain_steps

Regard = Callable[..., Any]
FINDINGS = {"none": [10.0, 5.0, 20.0], "global": [50.0, 60.0, 40.0], "local": [90.0, 45.0, 95.0]}


@pytest.mark.parametrize("kernel", [KERNEL, 5])
def test_paths_steps_and_operations_are_those_of_the_formulas(kernel: int) -> None:
    n, near = 41, 2 * RADIUS + 1
    for name, (layer, d) in build_layers(1024, kernel).items():
        shared, table = 2 * 4 * n * d**2, 2 * 2 * n**2 * d
        path, steps, operations = {
            "convolution": (-(-(n - 1) // (kernel // 2)), 1, 2 * kernel * n * d**2),
            "dilated convolution": (4 if kernel == 3 else 3, 1, 2 * kernel * n * d**2),
            "recurrence": (n, n, 2 * 2 * n * d**2),
            "self-attention": (1, 1, shared + table),
            "window": (3, 1, shared + 2 * 2 * n * near * d),
            "linear attention": (1, 1, shared + 2 * 2 * n * d**2 + 2 * n * d),
        }[name]
        cost = measure_cost(layer, d, n)
        assert (name, cost.path, cost.steps, cost.operations) == (name, path, steps, operations)


def test_attention_that_is_written_out_is_what_is_timed() -> None:
    for layer, width in build_layers(256).values():
        sequence = torch.randn(2, 53, width)
        if isinstance(layer, SelfAttention):
            assert torch.allclose(layer(sequence), layer.write_out(sequence), atol=1e-5)


def test_a_long_path_is_walked_to_its_end() -> None:
    """A gradient would have vanished on the way, and each layer more would have cost all before it again."""
    paths = {"convolution": 1299, "recurrence": 1300, "self-attention": 1, "dilated convolution": 7, "window": 82}
    for name, expected in paths.items():
        layer, width = build_layers(48)[name]
        assert measure_longest_path(layer, torch.randn(1, 1300, width)) == expected
    layer, width = build_layers(1024)["self-attention"]
    costs = [float(measure_cost(layer, width, length).operations) for length in (512, 1024)]
    assert estimate_exponent((512, 1024), costs) > 1.9


def test_layers_have_equal_parameters() -> None:
    counts = [sum(p.numel() for p in layer.parameters()) for layer, _ in build_layers(16384).values()]
    assert max(counts) < 1.06 * min(counts)


def test_the_lines_of_the_formulas_grow_as_they_say_and_meet_what_was_measured() -> None:
    costs = [LayerCost(length, Spread(7.0, 7.0, 7.0, 1), 3 * length, length, 1) for length in (16, 64)]
    for name, growth in (
        ("convolution", [4, 4, 4, 1, 4]),
        ("recurrence", [4, 4, 4, 4, 1]),
        ("self-attention", [16, 16, 1, 1, 4]),
    ):
        drawn = build_curve(name, 11, costs)
        assert [lines[-1] for lines in drawn.expected.values()] == [7, 192, 64, 1, 64]
        assert [lines[1] / lines[0] for lines in drawn.expected.values()] == pytest.approx(growth)


def test_layers_are_compared_with_a_picture(regard: Regard) -> None:
    done = regard("compare", "--parameters", 256, "--lengths", 4, 8, "--output", "c.svg")
    assert done.code == 0, done.errors
    assert all(word in done.output for word in ("longest path", "O(k n d²)", "O(n² d)", "self-attention n^"))
    assert "<svg" in Path("c.svg").read_text()
    found = json.loads(regard("compare", "--parameters", 256, "--lengths", 8, "--lengths", 4, "--json").output)
    assert (found["lengths"], found["layers"]["recurrence"]["longest path"]) == ([4, 8], [4, 8])
    even = regard("compare", "--kernel", 4)
    assert "--kernel: got 4, expected an odd number from 3; fix: write --kernel 3\n" in even.errors
    refused = regard("compare", "--lengths", 4)
    assert "--lengths: got (4,), expected at least two numbers above 1; fix: write --lengths 16 64\n" in refused.errors


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_comparison_runs_from_every_seed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm_depths, "measure_norm", partial(norm_depths.measure_norm, steps=2))
    monkeypatch.setattr(norm_lengths, "measure_norm_lengths", partial(norm_lengths.measure_norm_lengths, steps=2))
    monkeypatch.setattr(plain_steps, "measure_plain_steps", partial(plain_steps.measure_plain_steps, steps=2))
    monkeypatch.setattr(relevant_item, "measure_normalizer", partial(relevant_item.measure_normalizer, steps=2))
    monkeypatch.setattr(noisy_retrieval, "measure_score", partial(noisy_retrieval.measure_score, few=2, many=2))
    train_fully = comparison_measures.train_task
    brief = {"stop.steps": "2", **({"data.stories": "20", "held_out": "3"} if name == "memory" else {"items": "100"})}
    monkeypatch.setattr(
        comparison_measures, "train_task", lambda *given: train_fully(*given[:3], values={**given[3], **brief})
    )
    short = {"training.stop.steps": "2", "data.items": "100"}
    comparison = COMPARISONS[name]
    rows = list(compare_variants(comparison, [1, 2], short))
    wanted = [(one.name, own) for one in comparison.variants for own in comparison.sets]
    assert [row.name for row in rows] == [f"{one}; {own}" if len(comparison.sets) > 1 else one for one, own in wanted]
    assert all(len(row.values) == 2 for row in rows)


@pytest.mark.parametrize("name", COMPARISONS)
def test_claims_are_about_rows_that_exist(name: str) -> None:
    comparison = COMPARISONS[name]
    rows = {f"{one.name}; {own}" for one in comparison.variants for own in comparison.sets}
    assert {row for claim in comparison.claims for row in (claim.high, claim.low)} <= rows


def test_what_is_seen_is_said() -> None:
    comparison = COMPARISONS["global-local"]._replace(claims=(), note="Look.")
    assert describe_findings(FINDINGS, comparison) == (
        "local 90 against none 10: No seed of the one reaches one of the other. Look."
    )
    claims = [Claim("global", "none", "It sees all."), Claim("local", "global", "It is near.")]
    assert describe_findings(FINDINGS, comparison._replace(claims=claims, note="")) == (
        "global 50 against none 10: It sees all. "
        "local 90 against global 50: some seed of the one is not above all of the other."
    )


def test_a_trained_retriever_finds_the_label_of_the_nearest_key() -> None:
    task = noisy_retrieval.RetrievalTask(content=5, noise=0.0)
    query, key, value, label = task.draw(7, 11, torch.Generator().manual_seed(3))
    nearest = torch.cdist(query[:, None, :5], key)[:, 0].argmin(-1)
    assert torch.equal(value[torch.arange(7), nearest].argmax(-1), label)
    task = noisy_retrieval.RetrievalTask()
    trained, new = (
        noisy_retrieval.compute_accuracy(task, noisy_retrieval.train_retriever(task, 64, "scaled-dot", steps, 1), 16)
        for steps in (400, 0)
    )
    assert trained > 90 > 25 > new


def test_many_items_outweigh_one_under_a_softmax_of_bounded_scores_only() -> None:
    found = {}
    for kind in ("bounded softmax", "bounded sparsemax"):
        measured = relevant_item.measure_normalizer(kind, 1, steps=300)
        found[kind] = dict(zip([f"{name} {items}" for name in SHARPNESS for items in ITEMS], measured, strict=True))
    soft, sparse = found.values()
    assert soft["right 16"] > 90 > 30 > soft["right 1024"]
    assert sparse["right 1024"] > 90
    assert soft["weight at the right item 1024"] < 15 < 80 < sparse["weight at the right item 1024"]
    assert soft["share of the greatest entropy 1024"] > 80 > 15 > sparse["share of the greatest entropy 1024"]


def test_what_the_crowd_says_tells_nothing_about_the_right_label() -> None:
    crowd = relevant_item.draw_crowd(4000, 5, torch.Generator().manual_seed(2))
    each, said = torch.arange(4000), crowd.value.argmax(-1)
    assert torch.equal(said[each, crowd.place], crowd.label)
    others = said[each, (crowd.place + 1) % 5]
    assert torch.equal(others, said[each, (crowd.place + 2) % 5])
    assert abs(float((others == crowd.label).double().mean()) - 1 / relevant_item.LABELS) < 0.03
    assert torch.equal(torch.cdist(crowd.query[:, None], crowd.key)[:, 0].argmin(-1), crowd.place)


def test_padding_and_other_sequences_change_batch_norm_only() -> None:
    (letters, lengths), backwards = norm_lengths.draw_sequences(torch.tensor([5, 3]), torch.Generator().manual_seed(3))
    assert torch.equal(backwards[1, :3], letters[1, :3].flip(0))
    assert backwards[1, 3:].tolist() == [norm_lengths.IGNORED] * 2
    for batch_norm in (False, True):
        model = norm_lengths.Backwards(batch_norm=batch_norm)  # in training, as it begins
        with torch.no_grad():
            alone, beside = model(letters[1:, :3], lengths[1:]), model(letters, lengths)[1:, :, :3]
        assert torch.allclose(alone, beside, atol=1e-5) is not batch_norm


def test_the_seven_steps_that_are_printed_are_those_of_attention() -> None:
    torch.manual_seed(2)
    vectors, wanted, model = torch.randn(5, 3), torch.randn(3), plain_steps.PlainSteps(3).requires_grad_(False)
    steps = list(model.trace(vectors, wanted))
    assert [step.numbers.shape for step in steps] == [(5, 3), (3,), (5,), (5,), (3,), (3,), ()]
    assert torch.allclose(steps[5].numbers, model(vectors), atol=1e-6)
    assert float(steps[3].numbers.sum()) == pytest.approx(1)
    lines = plain_steps.describe_steps(steps=1)
    assert [line[0] for line in lines] == list("1234567")
    found = [plain_steps.measure_plain_steps("retrieval", 1, 600, attention=attention) for attention in (True, False)]
    assert found[0] < 0.1 < 0.5 < found[1]


def test_curves_of_seeds_are_drawn_against_a_number() -> None:
    names = [f"{name}; {own}" for name, own in product(("a, x", "a, y"), "pqrs")]
    rows = {name: [float(place), place + 2.0] for place, name in enumerate(names)}
    figure = draw_seed_curves(rows, {"one": (2, 4), "two": (3, 9)}, "items")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["one", "two"]
    drawn = [[(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines] for axes in figure.axes[:2]]
    assert drawn == [[([2, 4], [1, 2]), ([2, 4], [5, 6])], [([3, 9], [3, 4]), ([3, 9], [7, 8])]]
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "--"]


def test_the_values_of_seeds_are_drawn() -> None:
    figure = draw_ranges({"soft; a": [1.0, 3.0, 2.0], "soft; b": [4.0, 6.0, 5.0]}, "error")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["soft; a", "soft; b"]
    assert [list(line.get_xdata()) for line in axes.lines] == [[1, 3, 2], [2.0], [4, 6, 5], [5.0]]


def test_a_shift_of_positions_is_a_rotation(regard: Regard) -> None:
    done = regard("show", "positions", "--length", 20, "--dim", 8, "--output", "p.svg")
    assert (done.code, done.errors) == (0, "")
    assert "p[i + 7] = R p[i] for all 20 positions: holds, largest difference " in done.output
    assert "<svg" in Path("p.svg").read_text()
    odd = regard("show", "positions", "--dim", 7)
    assert odd.errors == (
        "regard: dim: got 7, expected an even number, because sine and cosine come in pairs; fix: use 8\n"
    )


def test_structures_are_listed_and_drawn(regard: Regard) -> None:
    listed = regard("show", "structure").output.split()
    assert {"transformer", "bahdanau", "luong", "multi-head"} <= set(listed)
    told = regard("show", "structure", "bahdanau")
    assert told.output.splitlines()[0].split() == ["part", "in", "regard", "goes", "to"]
    assert "attention pooling" in told.output
    assert not list(Path().glob("*.svg"))  # what was not asked for
    done = regard("show", "structure", "bahdanau", "--language", "zh", "--output", "bahdanau.svg")
    assert (done.code, done.errors) == (0, "")
    assert "注意力汇聚" in Path("bahdanau.svg").read_text(encoding="utf-8")
    assert regard("show", "structure", "bahdanua").errors.endswith("; fix: write bahdanau\n")
