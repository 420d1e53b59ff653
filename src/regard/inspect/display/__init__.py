"""Show attention in notebooks and browsers."""

from regard.inspect.display.view import view

__all__ = ["view"]
