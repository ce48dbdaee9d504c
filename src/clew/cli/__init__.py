"""The `clew` command."""

from clew.cli.app import main

__all__ = ["main"]
