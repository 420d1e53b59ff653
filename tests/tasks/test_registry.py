"""Every task offers the same things, so that every command works with every task."""

from pathlib import Path

import pytest

from regard.errors import InputError
from regard.tasks import TASKS, import_task
from regard.tasks.definition import TaskDefinition
from regard.training import Goal, Training, configure, to_toml


@pytest.mark.parametrize("name", TASKS)
def test_a_task_offers_everything(name: str, tmp_path: Path) -> None:
    package = import_task(name)
    assert isinstance(package, TaskDefinition)
    assert package.default.task == name
    assert isinstance(package.default.training, Training)
    for preset in package.presets:
        config = package.configure(preset, (), {"training.seed": "3"})
        assert config.training.seed == 3
        assert isinstance(package.get_goal(config), Goal)
        (tmp_path / "config.toml").write_text(to_toml(config))
        assert configure(package.default, tmp_path / "config.toml") == config


@pytest.mark.parametrize("name", TASKS)
def test_a_misspelt_preset_is_answered_with_the_nearest(name: str) -> None:
    preset = next(iter(import_task(name).presets))
    with pytest.raises(InputError, match=f"fix: write --preset {preset}$"):
        import_task(name).configure(f"{preset}x", (), {})


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("regression", "data.noise", "-1"),
        ("regression", "data.seed", "-1"),
        ("next-vector", "data.noise", "-1"),
        ("next-vector", "data.seed", "-1"),
        ("next-vector", "batch", "0"),
        ("digits", "data.seed", "-1"),
        ("digits", "data.training", "-1"),
        ("digits", "model.plain", "0"),
        ("digits", "learning.jitter", "-1"),
        ("inversion", "data.seed", "-1"),
        ("inversion", "batch", "0"),
        ("memory", "data.held_out", "0"),
        ("memory", "data.seed", "-1"),
        ("memory", "batch", "0"),
        ("captioning", "data.seed", "-1"),
    ],
)
def test_a_number_that_nothing_can_be_made_of_is_refused_before_any_work(name: str, field: str, value: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: got .*, expected .*; fix: "):
        import_task(name).configure(None, (), {field: value})


def test_a_misspelt_task_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"fix: write translation$"):
        import_task("translatoin")
