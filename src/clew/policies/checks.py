"""What speaks against a proposed compaction. Pure; `clew.policies.guard` acts on it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from clew.models.base import looks_like_error
from clew.policies.last_resort import lost_pins, standing
from clew.sessions.edits import Drop, Edit, Insert
from clew.sessions.rules import violations
from clew.sessions.spans import Index, Spans
from clew.sessions.view import View

REASONS = {
    "blank": "a summary without text",
    "error_text": "an error message in place of a summary",
    "truncated": "a summary cut off by the output limit",
    "refused": "the model declined to summarise",
    "system_edited": "the edits touch the system messages at the head",
    "user_edited": "the newest user message would not stay as it is",
    "unaccounted": "a message would go that no edit names",
    "round_split": "a call would be parted from its results",
    "invalid_view": "the view would break a rule of the providers",
    "pin_lost": "a pinned text would go",
    "not_smaller": "the view would not become smaller",
    "stalled": "attempts failed one after the other: the policy is not asked again, the last resort takes over",
}
"""Why a compaction does not count. Other failures of a model carry the name of their error class."""


class Objection(Struct, frozen=True):
    """A word of `REASONS`, what exactly is wrong, and the text it is about."""

    reason: str
    detail: str = ""
    raw: str = ""


def objection(view: View, edits: Sequence[Edit], after: View) -> Objection | None:
    """The first thing that speaks against making `after` out of `view` with these edits; None when nothing does."""
    return (
        _bad_text(edits)
        or _edited_head(view, after)
        or _edited_user(view, after)
        or _unaccounted(view, edits, after)
        or _invalid(view, after)
        or _lost_pin(view, after)
        or _not_smaller(view, edits, after)
    )


def spared(view: View, edits: Sequence[Edit]) -> list[Edit]:
    """The edits without the newest user message, when they would take it out of the view: it stays where it is.

    A summary that swallowed it (Pi's split turn) then stands before it, and the rest of its turn after it.
    """
    newest = view.last_user()
    if newest is None or not _edited_user(view, view.edited(edits)):
        return list(edits)
    ids = view.items[newest].ids
    out: list[Edit] = []
    for edit in edits:
        if isinstance(edit, Insert):
            out.append(edit)
            continue
        left = Spans(edit.ids).without(ids)
        if left:
            out.append(replace(edit, ids=left))
    return out


def _bad_text(edits: Sequence[Edit]) -> Objection | None:
    for edit in edits:
        if isinstance(edit, Drop):
            continue
        if edit.message.blank:
            return Objection("blank")
        if edit.how == "summary" and looks_like_error(edit.message.text):
            return Objection("error_text", raw=edit.message.text)
    return None


def _edited_head(view: View, after: View) -> Objection | None:
    before = [i.message for i in standing(view)]
    now = [i.message for i in standing(after)]
    return None if before == now else Objection("system_edited", f"{len(before)} system messages, {len(now)} after")


def _edited_user(view: View, after: View) -> Objection | None:
    old, new = view.last_user(), after.last_user()
    if old is None:
        return None
    if new is None or after.items[new].message != view.items[old].message:
        return Objection("user_edited", f"entries {view.items[old].ids}", view.items[old].message.text)
    return None


def _unaccounted(view: View, edits: Sequence[Edit], after: View) -> Objection | None:
    named = [edit.ids for edit in edits if not isinstance(edit, Insert)]
    index, spans = Index(named), [Spans(ids) for ids in named]
    there = {(item.ids, item.message.role): item for item in after.items if item.kind != "mend"}
    for item in view.items:
        if item.kind == "mend" or any(spans[n].covers(item.ids) for n in index.sharing(item.ids)):
            continue
        if there.get((item.ids, item.message.role)) != item:
            return Objection("unaccounted", f"the {item.message.role} message of entries {item.ids}", item.message.text)
    return None


def _invalid(view: View, after: View) -> Objection | None:
    split = _stand_ins(after) - _stand_ins(view)
    if split:
        return Objection("round_split", f"results of {', '.join(sorted(split))} would be missing")
    found = violations(after.messages)
    if found:
        return Objection("invalid_view", f"message {found[0].index}: {found[0].detail}")
    return None


def _stand_ins(view: View) -> set[str]:
    """The calls whose result is a stand-in."""
    return {r.call_id for item in view.items if item.kind == "mend" for r in item.message.results}


def _lost_pin(view: View, after: View) -> Objection | None:
    lost = lost_pins(view, after)
    return Objection("pin_lost", f"{len(lost)} of {len(view.pins)} pinned texts", lost[0]) if lost else None


def _not_smaller(view: View, edits: Sequence[Edit], after: View) -> Objection | None:
    if after.count < view.count:
        return None
    texts = [e.message.text for e in edits if not isinstance(e, Drop) and e.how == "summary"]
    return Objection("not_smaller", f"{view.tokens:,} tokens before, {after.tokens:,} after", "\n\n".join(texts))
