"""Where the keys of a cache are: what transformers' masks are made from, asked before the cache is written."""

import functools
from typing import Any

from regard.algebra.shapes import Tensor
from regard.inspect.observe.hooks import find_observed_sites
from regard.inspect.observe.patches import Function, is_observed


def wrap_cache_update(original: Function) -> Function:
    """The replacement of `Cache.update`, which tells who attends the position of the first key that comes back."""

    @functools.wraps(original)
    def wrapper(
        cache: Any, key_states: Tensor, value_states: Tensor, layer_idx: int, *arguments: Any, **named: Any
    ) -> Any:
        sizes = read_mask_sizes(cache, key_states, layer_idx) if is_observed() else None
        result = original(cache, key_states, value_states, layer_idx, *arguments, **named)
        if is_observed():
            keys = result[0].shape[-2]
            for observer, site in find_observed_sites():
                observer.expect(site.name, keys, sizes[1] if sizes is not None and sizes[0] == keys else None)
        return result

    return wrapper


def read_mask_sizes(cache: Any, new: Tensor, layer: int) -> tuple[int, int] | None:
    """How many keys an update with `new` ones will give, and the position of the first; None if nobody knows."""
    try:
        keys, offset = cache.get_mask_sizes(new.shape[-2], layer)
        return int(keys), int(offset)
    except Exception:  # a cache of somebody's own: whatever it raises is no reason to stop the model
        return None
