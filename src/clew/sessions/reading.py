"""A branch being read: the view so far, and what a session must know beside it. Pure."""

from __future__ import annotations

from msgspec import Struct

from clew.sessions.entries import Compaction, Entry, Failed, Said
from clew.sessions.view import Projection


class Reading(Struct, frozen=True):
    """The projection of a branch up to entry `at`.

    `boundary` is the newest compaction on the branch (0: none). `failures` counts the attempts that
    failed since, or since the user last spoke: what failed in one turn may be tried again in the next.
    """

    projection: Projection
    at: int | None = None
    boundary: int = 0
    failures: int = 0

    def step(self, entry: Entry) -> Reading:
        """The reading after one more entry of the branch."""
        boundary, failures = self.boundary, self.failures
        if isinstance(entry.body, Compaction):
            boundary, failures = entry.id, 0
        elif isinstance(entry.body, Failed):
            failures += 1
        elif isinstance(entry.body, Said) and entry.body.message.role == "user":
            failures = 0
        return Reading(self.projection.step(entry), entry.id, boundary, failures)
