"""Makes any view fit without a model, always in the same way.

The newest user message, the leading system messages and pinned texts are never touched. Everything
else gives way in the order of how little is lost by it: old tool results become placeholders, old
media notes, huge messages lose their middle, the oldest rounds become an extract, the newest round
is shortened; at the very end things are left out. The log keeps them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from msgspec import Struct

from clew.budget import Budget
from clew.errors import ContextOverflow
from clew.messages import Message
from clew.models.extractive import extract
from clew.policies.cuts import rounds
from clew.policies.fences import pinned, summary_message, summary_text
from clew.policies.shrink import shrink, without_media
from clew.policies.transforms import mask, results, rewrite
from clew.sessions.edits import Drop, Edit, Insert, Replace, pack
from clew.sessions.media import media_size
from clew.sessions.spans import Spans
from clew.sessions.view import Item, View

HUGE = 8
"""A message is huge when it takes more than this part of the free room: then its middle goes."""

EXTRACT = 4
"""The extract takes at most this part of the free room ..."""

EXTRACT_TOKENS = 4_000
"""... and at most so many tokens."""

EXTRACT_LEAST = 100
"""An extract of fewer tokens would say nothing: then the old rounds are left out."""


class Plan(Struct, frozen=True):
    """What a run works towards: `goal` and `hard` are uncalibrated tokens of the messages alone.

    `original` is the view as it was, `fixed` the entry ids that must not be touched, `room` what the
    goal leaves beside them. `pins` is kept free, below both, for pinned texts that have to be said again.
    """

    original: View
    fixed: Spans
    goal: int
    hard: int
    room: int
    pins: int
    media_bytes: int


def last_resort(view: View, budget: Budget, limit: int | None = None) -> list[Edit]:
    """Edits that bring a view of more than `limit` tokens (default: `budget.input`) to `budget.target`,
    or as far below `limit` as its newest round allows, and its media under `budget.media_bytes`.

    Empty when there is nothing to do or nothing left to give up. Raises `ContextOverflow` when the
    leading system messages, the tools and the newest user message alone exceed `budget.input`.
    """
    plan = _plan(view, budget, budget.input if limit is None else limit)
    edits: list[Edit] = []
    now = view
    if now.media_bytes > plan.media_bytes:
        edits += _less_media(now, plan)
        now = now.edited(edits)
    if now.count > plan.hard + plan.pins:
        for step, enough in [*((s, plan.goal) for s in GENTLE), *((s, plan.hard) for s in HARSH)]:
            if now.count > enough:
                new = step(now, plan)
                edits += new
                now = now.edited(new)
    edits = _squashed(edits)
    return edits + _pins(view, edits, plan) if edits else edits


def _plan(view: View, budget: Budget, limit: int) -> Plan:
    newest = view.last_user()
    fixed = [*standing(view), *([view.items[newest]] if newest is not None else [])]
    need = sum(i.count for i in fixed)
    if ceil((need + view.overhead) * view.scale) > budget.input:
        raise ContextOverflow(_figures(view, budget, newest))
    hard = _count(view, limit)
    goal = min(hard, max(_count(view, budget.target), need + (hard - need) // 2))
    ids = Spans(e for item in fixed for e in item.ids)
    again = view.counter.message(summary_message(pinned("", view.pins))) if view.pins else 0
    pins = min(again, max(hard - need, 0) // 2)
    return Plan(view, ids, goal - pins, hard - pins, max(goal - pins - need, 0), pins, budget.media_bytes)


def standing(view: View) -> list[Item]:
    """The system messages at the head, as they were logged (a summary in the system role is not one)."""
    return [i for i in view.items[: view.head()] if i.kind in ("message", "keep")]


def _count(view: View, tokens: int) -> int:
    """What the messages may count, uncalibrated, for the whole request to hold `tokens`."""
    exact = view.scale == 1
    return int(tokens / view.scale) - (not exact) - view.overhead


def _figures(view: View, budget: Budget, newest: int | None) -> dict[str, int]:
    def real(count: int) -> int:
        return ceil(count * view.scale)

    system = sum(i.count for i in standing(view))
    user = view.items[newest].count if newest is not None else 0
    return {
        "system": real(system),
        "tools": real(view.overhead),
        "user": real(user),
        "needed": real(system + view.overhead + user),
        "available": budget.input,
        "window": budget.window,
        "output": budget.output,
    }


def _movable(view: View, plan: Plan, start: int = 0, end: int | None = None) -> list[int]:
    """Indices that may be changed, oldest first."""
    stop = len(view.items) if end is None else end
    return [i for i in range(start, stop) if view.items[i].kind != "mend" and not _is_fixed(view.items[i], plan)]


def _is_fixed(item: Item, plan: Plan) -> bool:
    return item.kind in ("message", "keep") and plan.fixed.covers(item.ids)


def _newest_round(view: View) -> int:
    """Where the newest round begins (the end of the view if the assistant has not spoken)."""
    starts = rounds(view)
    return starts[-1] if starts else len(view.items)


def _less_media(view: View, plan: Plan) -> list[Edit]:
    """Strips media, oldest first, until the rest is within the byte budget."""
    edits: list[Edit] = []
    size = view.media_bytes
    for i in _movable(view, plan):
        if size <= plan.media_bytes:
            break
        item = view.items[i]
        bare = without_media(item.message)
        if bare is not item.message:
            edits.append(Replace(pack(item.ids), bare, how="summary" if item.kind == "summary" else "mask"))
            size -= media_size(item.message)
    return edits


def _mask_old(view: View, plan: Plan) -> list[Edit]:
    return rewrite(view, results(view, 0, _newest_round(view)), mask, "mask", room=plan.goal)


def _strip_old(view: View, plan: Plan) -> list[Edit]:
    return rewrite(view, _movable(view, plan, 0, _newest_round(view)), without_media, "mask", room=plan.goal)


def _shrink_old(view: View, plan: Plan) -> list[Edit]:
    limit = max(plan.room // HUGE, 100)
    return rewrite(view, _movable(view, plan, 0, _newest_round(view)), _to(limit, view), "shrink", room=plan.goal)


def _extract_old(view: View, plan: Plan) -> list[Edit]:
    """Turns the oldest rounds into an extract, as few as it takes, at most all before the newest one."""
    allowance = min(plan.room // EXTRACT, EXTRACT_TOKENS)
    if allowance < EXTRACT_LEAST:
        return []
    end = _extract_end(view, plan, allowance)
    old = [view.items[i] for i in _movable(view, plan, 0, end)]
    if not old:
        return []
    whole = {item.ids: item for item in plan.original.items if item.kind != "mend"}
    sources = [whole.get(item.ids, item) for item in old]
    previous = "\n\n".join(summary_text(i.message) for i in sources if i.kind == "summary")
    text = extract([i.message for i in sources if i.kind != "summary"], allowance, view.counter, previous)
    message = _to(allowance, view)(summary_message(text))
    if view.counter.message(message) >= sum(item.count for item in old):
        return []
    return [Replace(pack(e for item in old for e in item.ids), message)]


def _extract_end(view: View, plan: Plan, allowance: int) -> int:
    last = min(_newest_round(view), len(view.items))
    kept = view.count + allowance
    cuts = set(view.safe_cuts())
    for i in range(last):
        if i in cuts and kept <= plan.goal:
            return i
        if not _is_fixed(view.items[i], plan):
            kept -= view.items[i].count
    return last


def _shrink_newest(view: View, plan: Plan) -> list[Edit]:
    """Shares the room that is left among the messages of the newest round."""
    where = _movable(view, plan, _newest_round(view))
    here = sum(view.items[i].count for i in where)
    share = max((plan.goal + plan.hard) // 2 - (view.count - here), 0) // max(len(where), 1)
    return rewrite(view, where, _to(share, view), "shrink")


def _drop(view: View, plan: Plan) -> list[Edit]:
    """Leaves out everything but the newest round, or everything, the extract last."""
    where = _movable(view, plan)
    newest = _newest_round(view)
    older = [i for i in where if i < newest and view.items[i].kind != "summary"]
    extracts = [i for i in where if i < newest and view.items[i].kind == "summary"]
    last = [i for i in where if i >= newest]
    gone: list[int] = []
    edits: list[Edit] = []
    for group in (older, last, extracts):
        if view.edited(edits).count <= plan.hard:  # measured: dropping may put a stand-in into the view
            break
        gone += group
        edits = [Drop(pack(e for i in gone for e in view.items[i].ids))] if gone else []
    return edits


Step = Callable[[View, Plan], list[Edit]]

GENTLE: tuple[Step, ...] = (_mask_old, _strip_old, _shrink_old, _extract_old)
"""What gives way first, in this order, until the view is down to the goal."""

HARSH: tuple[Step, ...] = (_shrink_newest, _drop)
"""What happens to a view that does not fit even so, until it does."""


def _to(limit: int, view: View) -> Callable[[Message], Message]:
    return lambda message: shrink(message, limit, view.counter)


def _squashed(edits: Sequence[Edit]) -> list[Edit]:
    """The edits without those that a later one undoes: a masked result that went into the extract after all."""
    covered = Spans()
    out: list[Edit] = []
    for edit in reversed(edits):
        if isinstance(edit, Insert):
            out.append(edit)
            continue
        if not covered.covers(edit.ids):
            out.append(edit)
            covered.add(edit.ids)
    return out[::-1]


def _pins(view: View, edits: Sequence[Edit], plan: Plan) -> list[Edit]:
    """A message with the pinned texts that the edits would take out of the view."""
    lost = lost_pins(view, view.edited(edits))
    if not lost:
        return []
    room = plan.hard + plan.pins - view.edited(edits).count
    message = _to(max(room, 0), view)(summary_message(pinned("", lost)))
    return [Insert(None, message)] if view.counter.message(message) <= room else []


def lost_pins(before: View, after: View) -> tuple[str, ...]:
    """The pinned texts that the view held and no longer holds."""
    if not before.pins:
        return ()
    old, new = (_visible(v) for v in (before, after))
    return tuple(p for p in dict.fromkeys(before.pins) if p in old and p not in new)


def _visible(view: View) -> str:
    return "\n\n".join(
        piece
        for m in view.messages
        for piece in (m.text, *(r.text for r in m.results), *(c.arguments for c in m.calls))
    )
