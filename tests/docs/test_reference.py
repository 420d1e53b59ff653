"""The generated reference: no public name is missing, in either language, and programs are described as they are."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from regard.cli.commands import app
from regard.cli.fields import describe_fields
from regard.tasks import TASKS, import_task
from regard.web.limits import Limits
from regard.web.openapi import build_document

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("reference")
    for language in ("en", "zh"):
        load("reference.site").write_reference(target / language, language)
    return target


def load(name: str) -> ModuleType:
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))
    return importlib.import_module(name)


def read(folder: Path, language: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((folder / language).iterdir()))


def test_no_public_name_is_missing(folder: Path) -> None:
    exported = {name for _, name in load("reference.names").list_exported()}
    assert len(exported) > 250
    for language in ("en", "zh"):
        described = set(re.findall(r"^## \w+ \{#(\w+)\}$", read(folder, language), re.MULTILINE))
        assert exported <= described, exported - described


def test_names_have_their_line_of_chinese() -> None:
    """A name may be new for a while; nearly all are in docs/reference/chinese.toml, and few of those are gone."""
    names = load("reference.names")
    public = [each for page in names.collect_pages().values() for each in page]
    bare = [each.name for each in public if not re.search("[\u4e00-\u9fff]{2}", each.chinese)]
    assert len(bare) <= 0.05 * len(public), bare
    gone = set(names.CHINESE) - {each.name for each in public}
    assert len(gone) <= 0.05 * len(public), gone


def test_parts_have_their_plan_and_their_transforms(folder: Path) -> None:
    text = (folder / "zh" / "scores.md").read_text(encoding="utf-8")
    section = text.split("{#Gaussian}")[1].split("\n## ")[0]
    assert "backend sdpa" in section
    assert "| `gaussian` | sdpa |" in section
    assert "`高斯核`" in section
    assert "$$" in section
    assert "```pycon" in section


def test_commands_fields_tasks_and_paths_are_all_there(folder: Path) -> None:
    for language in ("en", "zh"):
        commands = (folder / language / "commands.md").read_text(encoding="utf-8")
        assert {name for name in app if not name.startswith("-")} == set(
            re.findall(r"^## regard (\w+)$", commands, re.M)
        )
        assert "--n-best" in commands
        assert "--all-heads" in commands
        fields = (folder / language / "configuration.md").read_text(encoding="utf-8")
        for task in TASKS:
            assert {f"`{field.name}`" for field in describe_fields(import_task(task).default)} <= set(
                re.findall(r"^\| (`[\w.]+`) \|", fields, re.M)
            )
        server = (folder / language / "server.md").read_text(encoding="utf-8")
        assert all(f" {path}\n" in server for path in build_document(Limits())["paths"])


def test_what_programs_say_is_there_in_chinese() -> None:
    """A field or flag may be new for a while; most are in docs/reference/chinese.toml, and few of those are gone."""
    said = set(load("reference.programs").list_texts())
    known = set(load("reference.names").CHINESE_TEXTS)
    assert len(said - known) <= 0.05 * len(said), said - known
    assert len(known - said) <= 0.05 * len(said), known - said


def test_every_field_says_what_it_means() -> None:
    fields = {field for task in TASKS for field in describe_fields(import_task(task).default)}
    assert {field.name for field in fields if not field.describe()} == set()
