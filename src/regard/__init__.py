"""regard: every attention mechanism under one operator, each proven equal to its definition.

Names are found when they are first used, so that `import regard` and the command line do not wait for torch.

>>> from regard import Causal, Gaussian, attend
>>> x = torch.arange(3.0)[:, None]
>>> attend(x, x, x, score=Gaussian(bandwidth=0.1), mask=Causal()).output.flatten()
tensor([0., 1., 2.])
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.2.0"

# A new mechanism is not named here: all that a family has in its `__all__` is public.
_FAMILIES = ["errors", "algebra.scores", "algebra.biases", "algebra.masks", "algebra.normalizers", "algebra.aggregates"]
_OTHERS = {
    "AttentionResult": "compute.attend",
    "CallFacts": "algebra.parts",
    "Parts": "algebra.parts",
    "Plan": "compute.planning",
    "Recording": "inspect.recording",
    "Weights": "compute.weights",
    "attend": "compute.attend",
    "load": "tasks.loading",
    "make_plan": "compute.planning",
    "masked_softmax": "compute.masked_softmax",
    "observe": "inspect.observe",
    "train": "tasks.loading",
    "view": "inspect.display",
}

if TYPE_CHECKING:
    from regard.algebra.aggregates import *
    from regard.algebra.biases import *
    from regard.algebra.masks import *
    from regard.algebra.normalizers import *
    from regard.algebra.parts import CallFacts as CallFacts
    from regard.algebra.parts import Parts as Parts
    from regard.algebra.scores import *
    from regard.compute.attend import AttentionResult as AttentionResult
    from regard.compute.attend import attend as attend
    from regard.compute.masked_softmax import masked_softmax as masked_softmax
    from regard.compute.planning import Plan as Plan
    from regard.compute.planning import make_plan as make_plan
    from regard.compute.weights import Weights as Weights
    from regard.errors import *
    from regard.inspect.display import view as view
    from regard.inspect.observe import observe as observe
    from regard.inspect.recording import Recording as Recording
    from regard.tasks.loading import load as load
    from regard.tasks.loading import train as train
else:

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return sorted([*_OTHERS, *(public for family in _FAMILIES for public in _load(family).__all__)])
        if name.startswith("_") or find_spec(f"regard.{name}"):
            raise AttributeError(f"module 'regard' has no attribute {name!r}")
        homes = [_OTHERS[name]] if name in _OTHERS else _FAMILIES
        for home in map(_load, homes):
            if name in _OTHERS or name in home.__all__:
                globals()[name] = getattr(home, name)  # from now on found without this function
                return globals()[name]
        raise _load("algebra.foreign_names").missing_name_error("regard", name, __getattr__("__all__"))

    def __dir__() -> list[str]:
        return [*__getattr__("__all__"), "__version__"]

    def _load(home: str) -> ModuleType:
        return import_module(f"regard.{home}")
