"""Importing the package costs next to nothing, and what it promises is there."""

import importlib
import subprocess
import sys

import pytest

import regard

PUBLIC: list[str] = importlib.import_module("regard").__all__
FAMILIES = {
    "scores": "score",
    "biases": "bias",
    "masks": "mask",
    "normalizers": "normalizer",
    "aggregates": "aggregate",
}


@pytest.mark.parametrize("name", ["regard", "regard.cli", "regard.errors", "regard.tasks"])
def test_importing_the_package_imports_no_torch(name: str) -> None:
    code = f"import sys, {name}; print(sorted({{n.split('.')[0] for n in sys.modules}} & {{'torch', 'numpy'}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_all_is_sorted_and_has_every_family() -> None:
    assert sorted(set(PUBLIC)) == PUBLIC
    for family in ("errors", *(f"algebra.{name}" for name in FAMILIES)):
        assert set(importlib.import_module(f"regard.{family}").__all__) <= set(PUBLIC), family


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_there_and_documented(name: str) -> None:
    assert getattr(regard, name).__doc__


@pytest.mark.parametrize("name", FAMILIES)
def test_every_class_of_a_family_that_the_catalog_builds_is_public(name: str) -> None:
    catalog = importlib.import_module("regard.algebra.catalog").FAMILIES[FAMILIES[name]]
    sizes = importlib.import_module("regard.algebra.catalog").Sizes(8, 8, 8, (1, 2), 8, 8)
    made = {type(build(sizes)).__name__ for build in catalog.values()}
    assert made - {"NoneType", "Offset", "Sum", "Intersection", "MaskUnion", "Complement"} <= set(PUBLIC)


def test_a_star_import_gives_them_all_and_nothing_else() -> None:
    space: dict[str, object] = {}
    exec("from regard import *", space)
    assert set(space) - {"__builtins__"} == set(PUBLIC)


def test_public_names_alone_are_listed_for_completion() -> None:
    assert set(dir(regard)) == {*PUBLIC, "__version__"}


def test_a_submodule_is_no_reason_to_import_torch() -> None:
    code = "import sys; from regard import errors, cli; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^regard\.Atend: got no such name, .*; fix: write regard\.attend$"):
        _ = regard.Atend  # type: ignore[attr-defined]


CORE = (
    "algebra.pairs algebra.terms algebra.scores algebra.biases algebra.masks algebra.normalizers algebra.aggregates "
    "algebra.parts compute.planning compute.backends compute.weights compute.attend algebra.catalog testing"
)


def test_every_module_can_be_imported_alone() -> None:
    """No module leans on another having been imported before it: cycles hide behind that."""
    code = f"""
import importlib, sys, torch
for name in {CORE!r}.split():
    for known in [known for known in sys.modules if known.startswith("regard")]:
        del sys.modules[known]
    importlib.import_module(f"regard.{{name}}")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_help_takes_a_quarter_of_a_second() -> None:
    """Of processor time, the least of three: whatever else the machine does."""
    code = "import resource, subprocess, sys; subprocess.run([sys.executable, '-m', 'regard', '--help'], check=True);"
    code += "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)"
    times = [
        float(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-1]
        )
        for _ in range(3)
    ]
    assert min(times) <= 0.25
