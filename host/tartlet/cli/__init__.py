"""The `tartlet` command. Importing it must stay cheap: what is heavy is imported inside the commands."""

from tartlet.cli.app import app, main

__all__ = ["app", "main"]
