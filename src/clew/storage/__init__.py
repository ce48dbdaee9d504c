"""Where sessions and memories live."""

from clew.storage.changes import Changes
from clew.storage.locate import open_store
from clew.storage.rows import ChangeRow, EntryRow, SessionRow
from clew.storage.store import Store

__all__ = ["ChangeRow", "Changes", "EntryRow", "SessionRow", "Store", "open_store"]
