"""Where a view may be cut in two: what lies before the index is old, the rest stays.

A cut is one of `View.safe_cuts()`, so no call is parted from its results, and never lies inside the leading system
messages.
"""

from __future__ import annotations

from bisect import bisect_right

from clew.sessions.view import View


def rounds(view: View) -> list[int]:
    """Where each round begins: the indices of the assistant's messages."""
    return [i for i, item in enumerate(view.items) if item.message.role == "assistant"]


def turns(view: View) -> list[int]:
    """Where each turn begins: the indices of what the user wrote (no summaries, no mends)."""
    return [i for i, item in enumerate(view.items) if item.message.role == "user" and item.kind in ("message", "keep")]


def keep_tokens(view: View, tokens: int) -> int:
    """The cut that keeps as much of the end as fits in `tokens`; the end of the view when nothing fits."""
    best = len(view.items)
    kept = 0
    cuts = set(view.safe_cuts())
    for i in range(len(view.items) - 1, view.head() - 1, -1):
        kept += view.items[i].count
        if kept * view.scale > tokens:
            break
        if i in cuts:
            best = i
    return best


def safe_before(view: View, index: int) -> int:
    """The last safe cut at or before `index`: keeps what `index` would keep, and the rest of its round."""
    cuts = view.safe_cuts()
    return max(cuts[max(bisect_right(cuts, index) - 1, 0)], view.head())
