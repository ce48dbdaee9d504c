"""The default wrapper of every policy: a compaction counts only when it holds, and there is always a way to fit.

A policy proposes, the guard checks, and only then the proposal is returned to be committed. What
does not hold leaves the view as it was and is recorded with its reason, figures and raw text. When
a view does not fit (or two attempts failed in a row) `last_resort` makes it fit without a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.errors import BadReply, EmptyReply, ModelError, RefusedReply, TruncatedReply
from clew.messages import Usage
from clew.models.base import ModelCall, answer_text
from clew.models.steps import Failure, Steps
from clew.policies.checks import REASONS, objection, spared
from clew.policies.last_resort import last_resort
from clew.sessions.edits import Edit
from clew.sessions.entries import Compaction
from clew.sessions.policy import Due, Policy, compaction
from clew.sessions.view import View

__all__ = ["ATTEMPTS", "LAST_RESORT", "REASONS", "Guarded"]

T = TypeVar("T")

ATTEMPTS = 2
"""Failed attempts in a row after which the policy is not asked again (Claude Code 2.1.76 stops after 3, without a
way on)."""

LAST_RESORT = "last resort"
"""The policy named in a compaction that the guard made alone."""

OVERFLOW_SHARE = 0.9
"""After a provider's overflow error the view must shrink to this share of what was sent: the count was wrong."""

_WORDS: dict[type[ModelError], str] = {
    EmptyReply: "blank",
    TruncatedReply: "truncated",
    RefusedReply: "refused",
    BadReply: "error_text",
}


class Guarded(Struct, frozen=True):
    """A policy under guard. `window` (tokens, 0: the session's) is the window it works with."""

    policy: Policy
    window: int = 0

    @property
    def name(self) -> str:
        return self.policy.name

    def budget(self, window: int) -> Budget:
        """The policy's own limits. Raises `BadBudget` on a window that is none, whatever the policy."""
        size = self.window or window
        Budget.of(size)
        return self.policy.budget(size)

    def due(self, view: View, budget: Budget) -> Due | None:
        """Due when the policy says so, and always when the view does not fit, in tokens or in bytes of media."""
        found = self.policy.due(view, budget)
        if found is None and not _fits(view, budget, budget.input):
            found = Due("threshold", view.tokens, budget.input)
        return found

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """The policy's compaction if it holds, with the last resort on top if the view still does not fit.

        Raises `ContextOverflow` when nothing is left to shrink.
        """
        if due.reason == "overflow":  # a request may be too long in bytes as well (HTTP 413)
            budget = replace(budget, media_bytes=min(budget.media_bytes, view.media_bytes // 2))
        if due.failures >= ATTEMPTS:
            if due.failures == ATTEMPTS:
                yield self._failure("stalled", view, due)
            limit = budget.target if due.reason == "manual" else budget.trigger
            return self._resort(view, budget, due, min(limit, _limit(view, budget, due)))
        found = None
        if due.reason != "threshold" or self.policy.due(view, budget) is not None:
            found = yield from self._checked(view, budget, due)
        if found is None:
            limit = _limit(view, budget, due)
            return None if _fits(view, budget, limit) else self._resort(view, budget, due, limit)
        # Above the trigger the view would be due again at the next call, and again.
        limit = min(budget.trigger, _limit(view, budget, due))
        if _fits(view.edited(found.edits), budget, limit):
            return found
        return self._resort(view, budget, due, limit, found)

    def _checked(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """What the policy proposes, when it holds; otherwise the failure is recorded and nothing comes back."""
        spent: list[Usage] = []
        try:
            found = yield from _answers_only(self.policy.compact(view, budget, due), spent)
        except ModelError as error:
            reason = _WORDS.get(type(error), type(error).__name__)
            yield self._failure(reason, view, due, detail=error.reason, raw=error.raw, usage=_sum(spent))
            return None
        if found is None:
            return None
        edits = spared(view, found.edits)
        after = view.edited(edits)
        wrong = objection(view, edits, after)
        if wrong is not None:
            yield self._failure(
                wrong.reason, view, due, detail=wrong.detail, raw=wrong.raw, usage=_sum(spent), after=after.tokens
            )
            return None
        return found if edits == list(found.edits) else _with(view, edits, due, found)

    def _resort(
        self, view: View, budget: Budget, due: Due, limit: int, found: Compaction | None = None
    ) -> Compaction | None:
        """The last resort, alone or on top of a compaction that holds."""
        base: Sequence[Edit] = found.edits if found is not None else ()
        more = last_resort(view.edited(base) if base else view, budget, limit)
        if not more:
            return found
        if found is None:
            return compaction(view, more, due, policy=LAST_RESORT, details={"for": self.name})
        details = {**found.details, "last_resort": len(more)}
        return _with(view, [*base, *more], due, replace(found, details=details))

    def _failure(
        self,
        reason: str,
        view: View,
        due: Due,
        *,
        detail: str = "",
        raw: str = "",
        usage: Usage | None = None,
        after: int | None = None,
    ) -> Failure:
        figures = {"before": view.tokens, "limit": due.limit}
        if after is not None:
            figures["after"] = after
        text = ": ".join(piece for piece in (REASONS.get(reason, ""), detail) if piece)
        return Failure(reason, self.name, text, figures, raw, due.failures + 1, usage)


def _limit(view: View, budget: Budget, due: Due) -> int:
    """What the view must not exceed, in tokens."""
    if due.reason == "overflow":
        return min(budget.input, int(view.tokens * OVERFLOW_SHARE))
    return budget.input


def _fits(view: View, budget: Budget, limit: int) -> bool:
    return view.tokens <= limit and view.media_bytes <= budget.media_bytes


def _with(view: View, edits: Sequence[Edit], due: Due, found: Compaction) -> Compaction:
    """The compaction with other edits, measured again."""
    return compaction(
        view,
        edits,
        due,
        policy=found.policy,
        calls=found.calls,
        usage=found.usage,
        details=found.details,
    )


def _sum(spent: Sequence[Usage]) -> Usage | None:
    return sum(spent[1:], spent[0]) if spent else None


def _answers_only(steps: Steps[T], spent: list[Usage]) -> Steps[T]:
    """Runs a policy's steps so that a reply that is no answer reaches it as the typed error, as a failed call does.

    The usage of each summary call is noted in `spent`.
    """
    try:
        ask = next(steps)
        while True:
            try:
                answer = yield ask
                if isinstance(ask, ModelCall) and ask.purpose == "summary":
                    spent.append(answer.usage)
                    answer_text(answer)
            except ModelError as error:
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()
