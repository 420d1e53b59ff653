"""What stands at the top of the repository agrees with the code, and with each other."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import regard

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_one_version_everywhere() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == regard.__version__


def test_the_changelog_keeps_its_form() -> None:
    """Versions, each with sections of the six kinds, and lines that begin with a dash."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:])
    kinds = {line for line in lines if line.startswith("### ")}
    assert kinds <= {f"### {kind}" for kind in ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_make_what_there_is(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    made = [run.split()[1] for run in runs if run.startswith("make ")]
    assert made
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(made) <= set(targets)


def test_classifiers_are_known() -> None:
    classifiers = pytest.importorskip("trove_classifiers").classifiers
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["classifiers"]) <= classifiers


def test_templates_are_forms() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.stem != "config":
            assert {"name", "description", "body"} <= set(form)


def test_the_tried_versions_are_those_of_the_page_and_of_the_classifiers() -> None:
    """A classifier names a Python only if every code path was compared with it."""
    records = json.loads((ROOT / "release" / "tried.json").read_text())
    page = (ROOT / "docs" / "versions.md").read_text()
    assert all(f"| {one['python']} | {one['torch']} |" in page and one["outcome"] in page for one in records)
    verified = {".".join(one["python"].split(".")[:2]) for one in records if one["ran"] == "regard verify"}
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert verified == {name.rpartition(" ")[2] for name in classifiers if re.search(r":: 3\.\d+$", name)}
