"""Every transform of torch works with every part, or is refused in our own words; docs/transforms.md says which."""

import importlib.util
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.autograd import forward_ad

from regard import Causal, CenteredWindow, Gumbel, InputError, Window, attend
from regard.algebra import catalog
from regard.compute.kernels import native
from regard.compute.lowering import spans

GENERATOR = Path(__file__).parents[2] / "docs" / "transforms.py"


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regard_transforms", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


transforms = load_generator()


@pytest.fixture(autouse=True, scope="module")
def _compiled_library() -> None:
    """With our own loops if they were ever compiled here: they are what must not be shown tensors without memory."""
    native.load_library(build=False)


def read_table() -> dict[str, dict[str, str]]:
    """Return the cells of the document, by row and column."""
    found, family, columns = {}, "", []
    for line in transforms.TARGET.read_text(encoding="utf-8").splitlines():
        cells = [part.strip() for part in line.replace("\\|", "\0").split("|")[1:-1]]
        if line.startswith("## "):
            family = line.removeprefix("## ")
        elif line.startswith("| |"):
            columns = cells[1:]
        elif line.startswith("| `"):
            name = cells[0].strip("`").replace("\0", "|")
            found[f"{family}: {name}"] = dict(zip(columns, cells[1:], strict=True))
    return found


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("row", transforms.ROWS, ids=str)
def test_every_transform_gives_what_the_definition_gives(row: object) -> None:
    told, plain = read_table()[str(row)], transforms.run_check("eager", row)
    assert told["eager"] == plain.backend
    assert not plain.defect, plain.defect
    for name in transforms.CHEAP:
        outcome = plain if name == "eager" else transforms.run_check(name, row)
        assert not outcome.defect, (name, outcome.defect)
        assert name == "eager" or told[name] == transforms.format_cell(plain, outcome), name


def test_the_document_has_a_row_for_each_part_and_a_column_for_each_transform() -> None:
    table = read_table()
    parts = [f"{family}: {name}" for family, made in catalog.FAMILIES.items() for name in made]
    assert set(parts) < set(table)
    assert list(table) == [str(row) for row in transforms.ROWS]
    for cells in table.values():
        assert tuple(cells) == transforms.COLUMNS
        assert all(cells.values())


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", ["second derivative", "autocast", "FakeTensor", "meta", "inference mode"])
def test_the_same_holds_in_several_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "choose_rows_per_block", partial(spans.choose_rows_per_block, budget=90))
    for row in transforms.ROWS:
        plain = read_table()[str(row)]["eager"]
        if plain in ("stream", "rows"):
            outcome = transforms.run_check(name, row)
            assert not outcome.defect, (str(row), outcome.defect)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", ["eager", "vmap", "grad", "autocast", "FakeTensor", "meta", "inference mode"])
def test_the_same_holds_in_a_long_window(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "SIZES", transforms.SIZES._replace(lead=(1, 1), queries=520, keys=520))
    centers = torch.linspace(0.0, 519.0, 520)
    for mask in (Window(before=9, after=3), Window(before=9, after=0) & Causal(), CenteredWindow(centers, radius=5)):
        row = transforms.Row("mask", "long", lambda _, own=mask: {"mask": own})
        if name == "meta" and isinstance(mask, CenteredWindow):
            row = row._replace(build=lambda _: {"mask": CenteredWindow(centers.to("meta"), radius=5)})
        outcome = transforms.run_check(name, row)
        assert not outcome.defect, (mask, outcome.defect)
        assert outcome.backend == ("eager" if name in ("vmap", "grad") else "local")


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("row", transforms.ROWS, ids=str)
def test_derivatives_are_carried_forward_outside_of_torch_func_too(row: object) -> None:
    """A kernel that cannot carry them would lose them without a word."""
    if row.name in transforms.STRAIGHT:  # type: ignore[attr-defined]
        return
    module, tensors = transforms.AttendModule(row), transforms.draw(transforms.SIZES)
    along = transforms.draw(transforms.SIZES, seed=4)
    slopes = transforms.compute_values_and_gradients(module.copy_as_definition(), tensors, ())[1:]
    true = sum((slope * a).sum() for slope, a in zip(slopes, along, strict=True) if slope is not None)
    with torch.no_grad(), forward_ad.dual_level():
        duals = [forward_ad.make_dual(tensor, a) for tensor, a in zip(tensors, along, strict=True)]
        _, found = forward_ad.unpack_dual(transforms.weigh(transforms.run_seeded(module, *duals)))
    torch.testing.assert_close(torch.zeros_like(true) if found is None else found, true)


def test_a_learned_alpha_and_temperature_have_derivatives_forward() -> None:
    for name in ("entmax", "tempered"):
        row = next(row for row in transforms.ROWS if row.name == name)
        module, tensors = transforms.AttendModule(row), transforms.draw(transforms.SIZES)
        own = {key: parameter.detach() for key, parameter in module.named_parameters()}

        def loss(values: dict[str, torch.Tensor], module: object = module, tensors: list = tensors) -> torch.Tensor:
            return transforms.weigh(torch.func.functional_call(module, values, tuple(tensors)))

        forward, backward = torch.func.jacfwd(loss)(own), torch.func.grad(loss)(own)
        for key in own:
            torch.testing.assert_close(forward[key], backward[key])


def test_random_aggregates_under_vmap_say_what_to_write() -> None:
    x = torch.randn(2, 3, 4)
    with pytest.raises(
        InputError, match=r'^vmap: got a call that draws .*; fix: write vmap\(…, randomness="different"'
    ):
        torch.func.vmap(lambda t: attend(t, t, t, aggregate=Gumbel()).output)(x)
    run = torch.func.vmap(lambda t: attend(t, t, t, aggregate=Gumbel()).output, randomness="different")
    same = run(x[:1].expand(2, -1, -1))
    assert not torch.equal(same[0], same[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("transform", ["traced", "export"])
def test_parts_built_inline_and_others_that_once_failed_compile_into_one_graph(transform: str) -> None:
    """In a process of its own, without shape checks; other parts: tests/compute/backends/test_tracing.py."""
    names = [*transforms.INLINE, "chunkwise", "relative"]
    only = [word for name in names for word in ("--only", name)]
    command = [sys.executable, str(GENERATOR), "--transform", transform, *only]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    outcomes = json.loads(run.stdout.splitlines()[-1])
    assert len(outcomes) == len(names)
    for row, found in outcomes.items():
        backend, refused, defect, _ = found[transform]
        assert not refused, (row, refused)
        assert not defect, (row, defect)
        assert backend == "eager" if "chunkwise" in row else backend in ("sdpa", "stream"), row
