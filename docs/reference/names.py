"""Which public names there are, and on which page of the reference each stands."""

import inspect
import pkgutil
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import regard
from regard.algebra.chinese import LINES
from regard.cli import inventory
from regard.tasks import TASKS

_TABLES = tomllib.loads((Path(__file__).parent / "chinese.toml").read_text(encoding="utf-8"))
CHINESE: dict[str, str] = _TABLES["names"]
CHINESE_TEXTS: dict[str, str] = _TABLES["texts"]
# Modules whose `__all__` is for this repository only: nobody else calls our C++ by its pointers.
INTERNAL = ("regard.compute.kernels.native",)
# Each page with the modules that it shows, in order; a name that two modules offer stands on the first page.
PAGES = {
    "attend": ("regard", "regard.compute.backends"),
    "scores": ("regard.algebra.scores",),
    "biases": ("regard.algebra.biases",),
    "masks": ("regard.algebra.masks",),
    "normalizers": ("regard.algebra.normalizers",),
    "aggregates": ("regard.algebra.aggregates",),
    "layers": ("regard.layers", "regard.layers.estimators"),
    "models": ("regard.models", "regard.models.search", "regard.models.encoders", "regard.models.decoders"),
    "inspect": ("regard.inspect.observe", "regard.inspect.recording", "regard.inspect.measure"),
    "draw": ("regard.inspect.draw",),
    "training": ("regard.training",),
    "tasks": (
        "regard.tasks",
        "regard.tasks.loading",
        "regard.tasks.prediction",
        "regard.tasks.definition",
        *(f"regard.tasks.{entry.package}" for entry in TASKS.values()),
    ),
    "data": ("regard.tasks.data", "regard.tasks.images", "regard.datasets"),
    "export": ("regard.export",),
    "testing": ("regard.testing", "regard.errors"),
}
# Modules without `__all__`, and what of them others use.
CHOSEN = {
    "regard.layers.estimators": ("KernelRegressor",),
    "regard.tasks.loading": ("TrainedModel",),
    "regard.tasks.prediction": ("Prediction", "Predictor", "EvaluationReport"),
    "regard.tasks.definition": ("TaskDefinition",),
}


class PublicName(NamedTuple):
    """A public name: where it is imported from, what it is, and one line of Chinese."""

    name: str
    home: str
    value: Any
    chinese: str

    @property
    def summary(self) -> str:
        """The first sentence of its docstring; of a constant, its type."""
        if is_described(self.value):
            return first_paragraph(inspect.getdoc(self.value) or "")
        return f"A constant: {type(self.value).__name__}."


def is_described(value: Any) -> bool:
    """Return whether a value has a docstring of its own: a class or a function of ours."""
    return (inspect.isclass(value) or inspect.isroutine(value)) and str(value.__module__).startswith("regard")


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(text.split("\n\n")[0].split())


def collect_pages() -> dict[str, list[PublicName]]:
    """Return the names of each page; each name once."""
    seen: set[tuple[str, Any]] = set()
    pages: dict[str, list[PublicName]] = {}
    families = {name for page in ("scores", "biases", "masks", "normalizers", "aggregates") for name in list_page(page)}
    for page, modules in PAGES.items():
        pages[page] = []
        for module in modules:
            for name, value in list_module(module):
                key = (name, id(value)) if is_described(value) else (name, module)
                elsewhere = page == "attend" and (name in families or name in ERRORS)
                if key not in seen and not elsewhere:
                    seen.add(key)
                    pages[page].append(PublicName(name, module, value, find_chinese(name, value)))
    return pages


def list_page(page: str) -> list[str]:
    """Return the names that the modules of a page offer."""
    return [name for module in PAGES[page] for name, _ in list_module(module)]


def list_module(module: str) -> Iterator[tuple[str, Any]]:
    """Yield what a module offers: its `__all__`, what is chosen of it, or all that is written in it."""
    found = import_module(module)
    if module == "regard.inspect.draw":
        yield from list_drawings()
    elif module in ("regard.models.encoders", "regard.models.decoders"):
        yield from list_models(module)
    elif module in CHOSEN or hasattr(found, "__all__"):
        yield from ((name, getattr(found, name)) for name in CHOSEN.get(module) or found.__all__)
    else:
        for name, value in vars(found).items():
            if not name.startswith("_") and is_described(value) and value.__module__ == module:
                yield name, value


def list_models(module: str) -> Iterator[tuple[str, Any]]:
    """Yield the encoders or decoders of the inventory."""
    for entry in [*inventory.FAMILIES["encoder"].values(), *inventory.FAMILIES["decoder"].values()]:
        home, _, name = entry.target.partition(":")
        if home.startswith(module):
            yield name, getattr(import_module(home), name)


def list_drawings() -> Iterator[tuple[str, Any]]:
    """Yield the functions that draw what their module is named for, and those that save."""
    for found in pkgutil.iter_modules(import_module("regard.inspect.draw").__path__):
        own = vars(import_module(f"regard.inspect.draw.{found.name}"))
        wanted = (f"draw_{found.name}", "save_figure", "save_report")
        yield from (
            (name, own[name])
            for name in wanted
            if name in own and own[name].__module__ == f"regard.inspect.draw.{found.name}"
        )


def find_chinese(name: str, value: Any) -> str:
    """Return the line of Chinese of a name: that of the catalog, or of chinese.toml; empty if it has none."""
    for family in ("layer", "encoder", "decoder", "search"):
        for entry in inventory.FAMILIES[family].values():
            if entry.target.endswith(f":{name}"):
                return entry.chinese
    if name in CHINESE:
        return CHINESE[name]
    own = list(vars(value).get("catalog_entries", {})) if inspect.isclass(value) else []
    return next((lines[entry] for entry in own for lines in LINES.values() if entry in lines), "")


def list_exported() -> Iterator[tuple[str, str]]:
    """Yield every name of every `__all__` in the package, with its module."""
    yield from (("regard", name) for name in regard.__all__)
    for found in pkgutil.walk_packages(regard.__path__, "regard."):
        if not found.name.endswith("__main__") and found.name not in INTERNAL:
            yield from ((found.name, name) for name in getattr(import_module(found.name), "__all__", ()))


ERRORS = frozenset(import_module("regard.errors").__all__)
