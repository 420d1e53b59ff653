"""Trained translators for other programs and other machines."""

from regard.export.engine import CTranslate2Translator, open_translator
from regard.export.folder import export

__all__ = ["CTranslate2Translator", "export", "open_translator"]
