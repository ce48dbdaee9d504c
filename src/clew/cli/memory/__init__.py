"""`clew memory`: what is remembered, from the command line."""

from clew.cli.memory.app import app

__all__ = ["app"]
