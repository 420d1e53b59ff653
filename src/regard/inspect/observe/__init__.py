"""Looking at the attention of any model while it works."""

from regard.inspect.observe.observer import observe

__all__ = ["observe"]
