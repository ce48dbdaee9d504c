"""The log of a memory in the store: changes, each appended once and never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clew.storage import statements
from clew.storage.rows import ChangeRow
from clew.storage.statements import BATCH, CHANGES_READ
from clew.storage.store import Store

Decide = Callable[[list[ChangeRow]], Sequence[ChangeRow]]
"""Given the changes that others have added, says which to add (their `position` is filled in)."""


class Changes:
    """The changes of one namespace. All processes that have the store open may append."""

    def __init__(self, store: Store, namespace: str) -> None:
        self.store = store
        self.namespace = namespace

    def after(self, position: int) -> list[ChangeRow]:
        """All changes that arrived after a position, in that order."""
        rows: list[ChangeRow] = []
        while True:
            chosen = {"namespace": self.namespace, "after": rows[-1].position if rows else position}
            with self.store.reading() as db:
                batch = db.execute(statements.CHANGES, chosen).all()
            rows += map(ChangeRow._make, batch)
            if len(batch) < CHANGES_READ:
                return rows

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        """Adds what `decide` says, knowing all that arrived after the position: in one transaction, on disk when
        this returns. A change that is here already (by its uid) is not added again. Gives what was added."""
        with self.store.writing() as db:
            wanted = {row.uid: row for row in decide(self.after(after))}
            uids = list(wanted)
            for start in range(0, len(uids), BATCH):
                chosen = {"namespace": self.namespace, "uids": uids[start : start + BATCH]}
                for (uid,) in db.execute(statements.HERE, chosen).all():
                    del wanted[uid]
            newest = db.execute(statements.NEWEST, {"namespace": self.namespace}).scalar() or 0
            rows = [row._replace(position=newest + n) for n, row in enumerate(wanted.values(), 1)]
            if rows:
                db.execute(statements.RECORD, [{"namespace": self.namespace, **row._asdict()} for row in rows])
        return rows
