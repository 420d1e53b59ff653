"""Ways to compute an attention. Each has one `run`, and none imports another."""

from regard.compute.backends import eager, few_queries, flex, linear, local, sdpa, stream
from regard.compute.lowering.backend import BackendFunction, BackendResult
from regard.compute.planning import Backend

RUNS: dict[Backend, BackendFunction] = {
    "eager": eager.run,
    "sdpa": sdpa.run,
    "few_queries": few_queries.run,
    "local": local.run,
    "linear": linear.run,
    "stream": stream.run,
    "rows": stream.run,
    "flex": flex.run,
}

__all__ = ["RUNS", "BackendFunction", "BackendResult"]
