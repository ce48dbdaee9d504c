"""Mini-SWE-Agent 2.4.6: a linear history.

Trigger: none; every call gets the whole list, and a request that the provider finds too long ends
the run. Kept: everything. Replaced: nothing (its templates cut single observations before they
enter the history: `clew.policies.shrink.head_tail`). Where Clew differs: the guard, and with it the
default, steps in when the view would not fit any more.
"""

from __future__ import annotations

from msgspec import Struct

from clew.budget import Budget
from clew.models.steps import Steps
from clew.sessions.entries import Compaction
from clew.sessions.policy import Due
from clew.sessions.view import View


class Linear(Struct, frozen=True):
    """Never compacts. `output` is the part of the window reserved for the reply, in tokens (default: `Budget.of`'s)."""

    output: int | None = None

    @property
    def name(self) -> str:
        return "linear"

    def budget(self, window: int) -> Budget:
        """All of the prompt space may be used."""
        return Budget.of(window, output=self.output, trigger=1.0)

    def due(self, view: View, budget: Budget) -> Due | None:
        """Never."""
        return None

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """Nothing to do, for whatever reason."""
        return None
        yield  # a computation that asks for nothing
