"""Trained translators for other programs and other machines."""

from regard.export.engine import CTranslate2Translator, open_translator
from regard.export.exported import find_format, open_exported
from regard.export.folder import export

__all__ = ["CTranslate2Translator", "export", "find_format", "open_exported", "open_translator"]
