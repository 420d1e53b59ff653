"""Ways to compute attention: one object each, and none imports another."""

from regard.compute.backends import eager, few_queries, flex, linear, local, sdpa, stream
from regard.compute.lowering.backend import Backend, BackendResult

# In the order in which `auto` asks them; eager, the definition, computes everything.
_OBJECTS: tuple[Backend, ...] = (
    linear.Linear(),
    local.Local(),
    few_queries.FewQueries(),
    sdpa.SDPA(),
    stream.Stream(),
    stream.Rows(),
    flex.Flex(),
    eager.Eager(),
)
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in _OBJECTS}

__all__ = ["BACKENDS", "Backend", "BackendResult"]
