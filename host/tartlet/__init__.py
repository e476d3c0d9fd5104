"""Tartlet: sandboxed programs that run next to a language model."""

__version__ = "0.1.0"
