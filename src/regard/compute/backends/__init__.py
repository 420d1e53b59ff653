"""Ways to compute attention: one object each, and none imports another."""

from regard.compute.backends import eager, few_queries, flex, linear, local, sdpa, stream
from regard.compute.lowering.backend import Backend, BackendResult

# In the order in which `auto` asks them; eager, the definition, computes everything.
_OBJECTS: tuple[Backend, ...] = (
    linear.LinearBackend(),
    local.LocalBackend(),
    few_queries.FewQueriesBackend(),
    sdpa.SDPABackend(),
    stream.StreamBackend(),
    stream.RowsBackend(),
    flex.FlexBackend(),
    eager.EagerBackend(),
)
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in _OBJECTS}

__all__ = ["BACKENDS", "Backend", "BackendResult"]
