"""Parts that are given by their names in the catalog."""

from typing import Any

from regard.algebra.catalog import Sizes, build_named
from regard.algebra.parts import Parts
from regard.algebra.shapes import Tensor, check_tensor


def resolve_names(parts: Parts, query: Tensor, key: Tensor, value: Tensor) -> Parts:
    """Return the parts with those that are named built for tensors of these sizes, on their device."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, tensor)
    lead = tuple(query.shape[:-2] if query.dim() >= key.dim() else key.shape[:-2])
    query_width, key_width, value_width = (tensor.shape[-1:].numel() for tensor in (query, key, value))
    queries, keys = (tensor.shape[-2:-1].numel() for tensor in (query, key))
    sizes = Sizes(query_width, key_width, value_width, lead, queries, keys)

    def build(family: str, part: Any) -> Any:
        if not isinstance(part, str):
            return part
        built = build_named(family, part, sizes, trained=False)
        return built.to(query.device) if hasattr(built, "to") else built

    return parts._replace(**{family: build(family, part) for family, part in parts._asdict().items()})
