"""Where a view may be cut in two: what lies before the index is old, the rest stays.

Every function returns one of `View.safe_cuts()`, so no call is parted from its results, and never
an index inside the leading system messages.
"""

from __future__ import annotations

from bisect import bisect_left

from clew.sessions.view import View


def rounds(view: View) -> list[int]:
    """Where each round begins: the indices of the assistant's messages."""
    return [i for i, item in enumerate(view.items) if item.message.role == "assistant"]


def turns(view: View) -> list[int]:
    """Where each turn begins: the indices of what the user wrote (no summaries, no mends)."""
    return [i for i, item in enumerate(view.items) if item.message.role == "user" and item.kind in ("message", "keep")]


def keep_rounds(view: View, n: int) -> int:
    """The cut that keeps the newest `n` rounds, and the user messages between them."""
    return _nth_last(view, rounds(view), n)


def keep_turns(view: View, n: int) -> int:
    """The cut that keeps the newest `n` turns."""
    return _nth_last(view, turns(view), n)


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
    at = bisect_left(cuts, index)
    found = cuts[at] if at < len(cuts) and cuts[at] == index else cuts[max(at - 1, 0)]
    return max(found, view.head())


def safe_after(view: View, index: int) -> int:
    """The first safe cut at or after `index`: gives up a round that `index` would split."""
    cuts = view.safe_cuts()
    return max(cuts[min(bisect_left(cuts, index), len(cuts) - 1)], view.head())


def middle(view: View, head: int, tail: int) -> tuple[int, int]:
    """What lies between the first `head` and the last `tail` messages, as (start, end), grown to whole rounds at both.

    The leading system messages do not count. Empty (start = end) when head and tail meet.
    """
    start = safe_after(view, view.head() + head)
    end = safe_before(view, len(view.items) - tail)
    return (start, end) if start < end else (start, start)


def _nth_last(view: View, starts: list[int], n: int) -> int:
    if n <= 0:
        return len(view.items)
    return safe_before(view, starts[-n]) if n <= len(starts) else view.head()
