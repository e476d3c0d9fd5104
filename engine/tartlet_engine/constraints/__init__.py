"""Constraints: what a generation may write, as masks over the vocabulary. Everything here works without torch."""
