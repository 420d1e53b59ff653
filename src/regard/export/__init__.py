"""Trained translators for other programs and other machines."""

from regard.export.engine import Fast, opened
from regard.export.folder import export

__all__ = ["Fast", "export", "opened"]
