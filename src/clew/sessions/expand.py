"""The entries behind an entry."""

from __future__ import annotations

from clew.sessions.edits import Drop, Edit, Ids, Replace
from clew.sessions.entries import BranchSummary, Compaction, Entry
from clew.sessions.log import Log
from clew.sessions.spans import Spans


def originals(log: Log, id: int) -> list[Entry]:
    """The logged entries that the entry stands for, ascending.

    Behind a compaction are the entries its edits name, and behind those that are compactions or
    branch summaries again theirs; behind a branch summary the entries of the branch it left. Any
    other entry stands for itself. Entries that cannot be read are left out.
    """
    found: dict[int, Entry] = {}
    seen: set[int] = set()
    ahead = {id}
    known = log.tree.ids()
    while ahead:
        seen |= ahead
        below: set[int] = set()
        for entry in log.read(sorted(i for i in ahead if i in log.tree)):
            body = entry.body
            if isinstance(body, Compaction):
                below.update(Spans(i for edit in body.edits for i in _named(edit)).within(known))
            elif isinstance(body, BranchSummary):
                below.update(_left(log, body.leaf, entry.id))
            else:
                found[entry.id] = entry
        ahead = below - seen
    return [found[i] for i in sorted(found)]


def _named(edit: Edit) -> Ids:
    if isinstance(edit, Drop):
        return edit.ids
    if isinstance(edit, Replace):
        return edit.ids + edit.sources
    return edit.sources


def _left(log: Log, leaf: int, here: int) -> list[int]:
    """The entries of the branch to `leaf` that are not on the branch to `here`."""
    if leaf not in log.tree:
        return []
    kept = set(log.tree.path(here))
    return [i for i in log.tree.path(leaf) if i not in kept]
