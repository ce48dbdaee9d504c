"""Followers: indexes that read a log, can be deleted and made again, and are searched together with what they
have not read yet."""

from clew.index.fulltext import FullText
from clew.index.rows import Gain, Hit, Row, Source

__all__ = ["FullText", "Gain", "Hit", "Row", "Source"]
