"""What the READMEs show works as it stands there, in both languages."""

import re
import tomllib
from pathlib import Path

import pytest

from regard.cli import app
from regard.tasks import TASKS, import_task

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]
PAGES = [*READMES, "docs/tasks.md"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", READMES)
def test_the_python_of_a_readme_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", text(name), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), namespace)
    assert (tmp_path / "looked.regard").is_file()


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_and_files_of_a_readme_exist(name: str) -> None:
    commands = set(re.findall(r"(?:\$ |\| |`)regard ([a-z]+)", text(name)))
    assert commands
    assert commands <= set(app), commands - set(app)
    for linked in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(name)):
        assert ((ROOT / name).parent / linked).exists(), linked


@pytest.mark.parametrize("name", PAGES)
def test_the_trainings_of_a_page_are_understood(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And the runs that it names have the names that trainings give them."""
    lines = re.findall(r"^\$ regard (train [a-z][^#\n]*)", text(name), re.MULTILINE)
    assert lines
    folders = {str(import_task(task).configure(None, (), {}).training.folder) for task in TASKS}
    for line in lines:
        app([*line.split(), "--print-config"], exit_on_error=False, print_error=False, result_action="return_value")
        config = tomllib.loads(capsys.readouterr().out)
        assert config["task"] == line.split()[1]
        folders.add(config["training"]["folder"])
    assert set(re.findall(r"\bruns/[\w-]+", text(name))) <= folders


def test_every_task_has_a_section() -> None:
    headings = re.findall(r"^## ([a-z-]+)$", text("docs/tasks.md"), re.MULTILINE)
    assert sorted(headings) == sorted(TASKS)
