"""Parts of libraries that import more than they compute with: tokenizers, options, plots and boards may be missing."""

import importlib
import importlib.util
import sys
import types
import warnings
from typing import Any

UNRELATED = {
    "onmt": ("pyonmttok", "configargparse", "onmt.transforms", "onmt.scorers", "onmt.translate.translation_server"),
    "joeynmt": ("importlib_metadata", "torch.utils.tensorboard", "joeynmt.plotting", "joeynmt.tokenizers"),
}


class BlankModule(types.ModuleType):
    """A module that has every name, each an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def borrow(name: str) -> Any:
    """The module of that name in one of those libraries. Who looks for what was missing later finds none."""
    blank = {
        missing: BlankModule(missing) for missing in UNRELATED[name.partition(".")[0]] if not is_importable(missing)
    }
    sys.modules.update(blank)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they decorate for CUDA by an old name
            return importlib.import_module(name)
    finally:
        for missing in blank:
            del sys.modules[missing]


def is_importable(name: str) -> bool:
    """Return whether a module is there with all that it needs."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
