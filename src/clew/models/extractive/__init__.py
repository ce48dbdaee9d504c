"""A deterministic, offline summariser for agent sessions."""

from clew.models.extractive.model import Extractive
from clew.models.extractive.summary import extract

__all__ = ["Extractive", "extract"]
