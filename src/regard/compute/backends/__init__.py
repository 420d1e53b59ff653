"""Ways to compute an attention. Each has one `run`, and none imports another."""

from regard.compute.backends import eager, few, flex, linear, local, sdpa, stream
from regard.compute.backends.result import BackendResult, BackendFunction
from regard.compute.planning import Backend

RUNS: dict[Backend, BackendFunction] = {
    "eager": eager.run,
    "sdpa": sdpa.run,
    "few": few.run,
    "local": local.run,
    "linear": linear.run,
    "stream": stream.run,
    "rows": stream.run,
    "flex": flex.run,
}

__all__ = ["RUNS", "BackendResult", "BackendFunction"]
