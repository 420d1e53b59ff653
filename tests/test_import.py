"""Importing the package costs next to nothing, and what it promises is there."""

import importlib
import subprocess
import sys

import pytest

import regard


@pytest.mark.parametrize("name", ["regard", "regard.cli", "regard.errors", "regard.tasks"])
def test_importing_the_package_imports_no_torch(name: str) -> None:
    code = f"import sys, {name}; print(sorted({{n.split('.')[0] for n in sys.modules}} & {{'torch', 'numpy'}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_all_is_sorted_and_complete() -> None:
    assert regard.__all__ == sorted(regard.__all__)
    assert set(regard.__all__) == set(regard._HOME_OF)
    assert len(set(regard.__all__)) == len(regard.__all__)


@pytest.mark.parametrize("name", regard.__all__)
def test_every_name_resolves_to_its_home(name: str) -> None:
    found = getattr(regard, name)
    assert found is getattr(importlib.import_module(f"regard.{regard._HOME_OF[name]}"), name)
    assert found.__doc__


def test_a_star_import_gives_them_all() -> None:
    space: dict[str, object] = {}
    exec("from regard import *", space)
    assert set(regard.__all__) <= set(space)


def test_families_have_no_name_that_the_package_hides() -> None:
    """A new score, bias, mask, normalizer or reading is exported too, or says by a small letter that it is not."""
    apart = {"Multiple", "Sum", "NormalizerForm", "SequentialNormalizer"}  # made by + and *, or for type annotations
    for home in ("scores", "biases", "masks", "normalizers"):
        module = importlib.import_module(f"regard.algebra.{home}")
        names = {name for name in module.__all__ if name[0].isupper()}
        assert names - set(regard.__all__) <= apart, home


def test_names_are_listed_for_completion() -> None:
    assert set(regard.__all__) <= set(dir(regard))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'regard' has no attribute 'Atend'$"):
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
