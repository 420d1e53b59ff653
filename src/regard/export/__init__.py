"""Trained translators for other programs and other machines."""

from regard.export.ctranslate2 import CTranslate2Translator
from regard.export.engines import Engine, EngineChoice, open_engine
from regard.export.exported import find_format, open_exported
from regard.export.folder import export

__all__ = ["CTranslate2Translator", "Engine", "EngineChoice", "export", "find_format", "open_engine", "open_exported"]
