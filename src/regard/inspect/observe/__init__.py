"""Record the attention of any model while it works."""

from regard.inspect.observe.session import observe

__all__ = ["observe"]
