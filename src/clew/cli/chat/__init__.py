"""`clew chat`: talking with a model in the terminal."""

from clew.cli.chat.app import chat

__all__ = ["chat"]
