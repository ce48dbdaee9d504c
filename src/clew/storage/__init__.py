"""Where sessions live."""

from clew.storage.locate import open_store
from clew.storage.rows import EntryRow, SessionRow
from clew.storage.store import Store

__all__ = ["EntryRow", "SessionRow", "Store", "open_store"]
