"""Looking at the attention of any model while it works."""

from regard.observing.observer import observe

__all__ = ["observe"]
