"""Sessions: the log, its tree, and the views of it.

`Session` brings the database with it and is loaded when first asked for; the data types are not.
"""

from typing import TYPE_CHECKING, Any

from clew.sessions.edits import SELF, Drop, Edit, Insert, Replace, pack, unpack
from clew.sessions.entries import (
    LEAF,
    Account,
    BranchSummary,
    Compaction,
    Draft,
    Entry,
    Failed,
    Label,
    Note,
    Pin,
    Said,
)
from clew.sessions.policy import Due, Policy, compaction
from clew.sessions.view import Item, View

if TYPE_CHECKING:
    from clew.sessions.session import Session

__all__ = [
    "LEAF",
    "SELF",
    "Account",
    "BranchSummary",
    "Compaction",
    "Draft",
    "Drop",
    "Due",
    "Edit",
    "Entry",
    "Failed",
    "Insert",
    "Item",
    "Label",
    "Note",
    "Pin",
    "Policy",
    "Replace",
    "Said",
    "Session",
    "View",
    "compaction",
    "pack",
    "unpack",
]


def __getattr__(name: str) -> Any:
    if name == "Session":
        from clew.sessions.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
