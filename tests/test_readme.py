"""The documents are true: their code runs, and the commands, files and names in them exist."""

import pkgutil
import re
import sys
import tomllib
from pathlib import Path

import pytest

from regard.cli.commands import app
from regard.tasks import TASKS, import_task

sys.path.insert(0, str(Path(__file__).parent / "web"))

from tiny_runs import make_run

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]
GUIDES = ["docs/guide.md", "docs/guide.zh-CN.md"]
PAGES = [*READMES, *GUIDES, "docs/tasks.md"]
DOCUMENTS = [*READMES, *GUIDES, "DESIGN.md", "CONTRIBUTING.md", "SECURITY.md"]


def read_page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def files() -> set[str]:
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "docs")]
    paths = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return {f"/{path.relative_to(ROOT).as_posix()}{'/' if path.is_dir() else ''}" for path in paths}


@pytest.mark.parametrize("name", ["DESIGN.md", "CONTRIBUTING.md"])
def test_the_source_files_that_a_document_names_exist(name: str, files: set[str]) -> None:
    """A path may leave out its beginning; one with NAME in it is for the reader to fill in."""
    named = re.findall(r"`([\w./]+(?:\.(?:py|cpp|hpp|js)|/))`", read_page(name))
    assert len(named) > 20
    missing = [path for path in named if "NAME" not in path and not any(file.endswith(f"/{path}") for file in files)]
    assert not missing


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_modules_and_names_of_a_document_exist(name: str) -> None:
    for dotted in re.findall(r"`(regard(?:\.\w+)+)(?:\(\))?`", read_page(name)):
        assert pkgutil.resolve_name(dotted) is not None


@pytest.mark.parametrize("name", READMES)
def test_a_readme_fits_a_screen_or_two(name: str) -> None:
    assert len(read_page(name).splitlines()) <= 120
    assert "✗" not in read_page(name)


def describe_structure(page: str) -> list[str]:
    """Return the kind of each line of a page without its words: heading, code, row with its numbers, item, picture."""
    lines: list[str] = []
    code = ""
    for line in page.splitlines():
        if line.startswith("```"):
            code = "" if code else line
            lines.append(line)
        elif code.endswith("console"):
            lines.append(" ".join(re.split(r"#|\s{2,}", line)[0].split()[:4]))
        elif code:
            lines.append(re.sub(r'"[^"]*"', '""', line.split("  #")[0]))
        elif line.startswith(("#", "|", "-", "!", ">")):
            lines.append(line[0] + " ".join(re.findall(r"\*\*[\d.]+×?\*\*", line)))
    return lines


def test_both_readmes_say_the_same() -> None:
    english, chinese = (describe_structure(read_page(name)) for name in READMES)
    assert english == chinese
    assert "![" in read_page("README.md").split("```")[0]  # the picture comes first


def test_a_readme_has_ten_lines_ten_commands_and_eight_figures() -> None:
    for name in READMES:
        python, commands = (
            re.findall(rf"```{kind}\n(.*?)```", read_page(name), re.DOTALL) for kind in ("python", "console")
        )
        assert len([line for line in python[0].splitlines() if line and "import" not in line]) <= 10
        assert [block.count("$ ") for block in commands] == [2, 10]
        measured = read_page(name).split("<!-- benchmarks:begin -->")[1].split("<!-- benchmarks:end -->")[0]
        assert 0 < len(re.findall(r"^\| .*\*\*", measured, re.MULTILINE)) <= 8


@pytest.mark.parametrize("name", [*READMES, *GUIDES])
def test_the_python_of_a_readme_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/numbers-transformer-tiny"), "transformer")
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", read_page(name), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), namespace)
    assert (tmp_path / "attention.regard").is_file()


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_and_files_of_a_readme_exist(name: str) -> None:
    commands = set(re.findall(r"(?:\$ |\| |`)regard ([a-z]+)", read_page(name)))
    assert commands
    assert commands <= set(app), commands - set(app)
    for linked in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read_page(name)):
        assert ((ROOT / name).parent / linked).exists(), linked


@pytest.mark.parametrize("name", PAGES)
def test_the_trainings_of_a_page_are_understood(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And the runs that it names are those that these trainings make."""
    lines = re.findall(r"^\$ regard (train [a-z][^#\n]*)", read_page(name), re.MULTILINE)
    assert lines
    folders = {str(import_task(task).configure(None, (), {}).training.folder) for task in TASKS}
    for line in lines:
        app([*line.split(), "--print-config"], exit_on_error=False, print_error=False, result_action="return_value")
        config = tomllib.loads(capsys.readouterr().out)
        assert config["task"] == line.split()[1]
        folders.add(config["training"]["folder"])
    assert set(re.findall(r"\bruns/[\w-]+", read_page(name))) <= folders


def test_every_task_has_a_section() -> None:
    headings = re.findall(r"^## ([a-z-]+)$", read_page("docs/tasks.md"), re.MULTILINE)
    assert sorted(headings) == sorted(TASKS)
