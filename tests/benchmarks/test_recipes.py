"""Recipes: every one can be read and would start, and what is recorded is what the table says."""

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks import comparisons, highlights, report
from benchmarks.recipes.recipe import Recipe, Run, list_recipes, read_recipe
from benchmarks.recipes.runs import COPIED, RunResult, TaskResult, find_figure, load, remove_paths, run_recipe, save
from regard.tasks import TASKS, import_task


@pytest.mark.parametrize("name", list_recipes())
def test_a_recipe_names_a_task_and_fields_that_exist(name: str) -> None:
    recipe = read_recipe(name)
    for run in recipe.runs:
        data = [f"/nowhere/{part}" for part in recipe.source]
        config = import_task(recipe.task).configure(
            run.preset, data, {key: str(value) for key, value in run.fields.items()}
        )
        assert config.task == recipe.task


def make_result(value: float, **changes: object) -> TaskResult:
    run = RunResult("ours", {}, 1, 10, 90.0, {}, value)
    made = TaskResult("x", "t", "digits", "m", "d", "test.a", "%", 99.0, None, "98 % (A 2014)", {}, "", "", [run])
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_a_row_says_what_was_reached_and_what_was_missed() -> None:
    assert report.render_task_row(make_result(99.25)) == "| digits | m | d | **99.25** % | 98 % (A 2014) | 1.5 min |"
    assert "**98.5** % ✗ (≥ 99 wanted)" in report.render_task_row(make_result(98.5))
    beside = [*make_result(99.5).runs, RunResult("plain", {}, 1, 1, 1.0, {}, 97.0)]
    assert "<br>plain: 97 |" in report.render_task_row(make_result(99.5, runs=beside))
    tested = [RunResult("ours", {}, 1, 1, 1.0, {"other": {"a": 4.0}}, 99.5), *beside[1:]]
    assert "<br>another set: 4; plain: 97 |" in report.render_task_row(
        make_result(0, runs=tested, also={"another set": "other.a"})
    )
    short = make_result(99.5, runs=beside, wanted={"plain": 97.5})
    assert not short.reached
    assert "**99.5** %<br>plain: 97 ✗ (≥ 97.5 wanted) |" in report.render_task_row(short)
    assert make_result(99.5, runs=beside, wanted={"plain": 97.0}).reached
    assert make_result(0.2, least=None, most=0.3).reached
    assert not make_result(0.4, least=None, most=0.3).reached


def test_the_page_of_results_has_a_row_for_each_recipe() -> None:
    page = report.render_task_page([make_result(99.5), make_result(98.5)])
    assert "**99.5** %" in page
    assert "**98.5** %" in page


def test_the_readme_has_one_row_for_each_task() -> None:
    tasks = [row.recipe for row in highlights.TASK_ROWS]
    found = {name: loaded for loaded in report.load_task_results() if (name := loaded.recipe) in tasks}
    assert sorted(loaded.task for loaded in found.values()) == sorted(TASKS)


def test_a_recipe_is_trained_resumed_and_recorded(tmp_path: Path) -> None:
    fields = {"stop.steps": 3, "every.log": 1, "training.threads": 1}
    recipe = Recipe("small", "t", "regression", "m", "d", "test.learned", [Run("ours", fields=fields)], most=1e9)
    first = run_recipe(recipe, tmp_path, tmp_path)
    assert first.reached
    assert (first.runs[0].steps, first.runs[0].seed) == (3, 1)
    assert first.runs[0].config["training"]["folder"] == "small-0"
    again = run_recipe(recipe, tmp_path, tmp_path)  # nothing is left to do, so nothing changes
    assert again.runs == first.runs
    assert load(save(first, tmp_path)) == first
    assert all(getattr(first, name) == getattr(recipe, name) for name in COPIED)


def test_the_mean_of_the_last_checkpoints_is_what_is_evaluated(tmp_path: Path) -> None:
    fields = {"stop.steps": 40, "every.evaluate": 10, "training.keep": 3, "training.threads": 1}
    runs = [Run("mean", fields=fields, average=3), Run("best", fields=fields)]
    mean, best = run_recipe(Recipe("small", "t", "regression", "m", "d", "test.learned", runs), tmp_path, tmp_path).runs
    assert (tmp_path / "small-0" / "averaged.safetensors").is_file()
    assert mean.value != best.value


def test_flags_of_every_run_are_written_once(tmp_path: Path) -> None:
    shared, own = 'fields = { "a" = 1, "b" = 2 }', 'fields = { "b" = 3 }'
    facts = "\n".join(f'{name} = "x"' for name in ("title", "task", "mechanism", "data", "metric"))
    (tmp_path / "r.toml").write_text(f'{facts}\n{shared}\n[[runs]]\nname = "one"\n{own}\n[[runs]]\nname = "two"\n')
    assert [run.fields for run in read_recipe("r", tmp_path).runs] == [{"a": 1, "b": 3}, {"a": 1, "b": 2}]


def test_figures_are_found_by_their_path() -> None:
    assert find_figure({"test": {"bleu": {"score": 3.0}}}, "test.bleu.score") == 3


def test_no_path_of_this_machine_is_recorded(tmp_path: Path) -> None:
    config = {"data": {"source": f"{tmp_path}/mnist"}, "training": {"folder": "/home/a/b"}}
    assert json.dumps(remove_paths(config, tmp_path)) == '{"data": {"source": "mnist"}, "training": {"folder": "b"}}'


def test_a_comparison_is_recorded_and_its_page_made(tmp_path: Path) -> None:
    rows = [{"name": "soft", "values": [1.0, 3.0, 2.5], "seconds": 7.4}]
    one = comparisons.ComparisonResult(
        "soft-hard", {}, "2026-01-02", "abc", {"title": "t: error on test, 3 seeds", "rows": rows}
    )
    machine = {"processor": "P", "torch": "2", "python": "3", "system": "S"}
    text = comparisons.render_mechanisms(dataclasses.replace(one, machine=machine))
    assert "t: error on test, 3 seeds.\n" in text
    assert "| soft | 2.5 | 1 | 3 | 7 |\n" in text
    assert "](../benchmarks/results/compare-soft-hard.svg)\n" in text
    assert "One core of P; torch 2, Python 3, S. 2026-01-02, commit abc." in text
    found = comparisons.run_comparison("layers", tmp_path, "--parameters=64", lengths=(4, 8))
    assert [found] == comparisons.load_results(tmp_path)
    assert (tmp_path / comparisons.name_picture("layers")).is_file()
    assert "| 4 | 8 | O(n) |" in comparisons.render_page([found])
