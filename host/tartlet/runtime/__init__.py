"""Runs: what the host keeps of each, how it talks to the engine for them, and how they begin and end."""
