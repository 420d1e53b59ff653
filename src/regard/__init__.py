"""Attention mechanisms for PyTorch: one algebra, fast backends, and tools to look at what is attended to."""

__version__ = "0.1.0"
