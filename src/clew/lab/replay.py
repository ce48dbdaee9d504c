"""Replays a recorded conversation under a context policy, as if the agent had run with it.

Every assistant message of the recording is one model call. Before each, the policy compacts when it
is due; what the model would have seen is noted, then the recorded reply is appended and the replay
goes on. Nothing is sent anywhere, except summaries when a real model is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from clew.errors import ContextOverflow
from clew.lab.plain import as_text, span
from clew.lab.result import FATES, Compacted, Fate, Impossible, Moment, Refused, Result, Share, Shown
from clew.messages import Message, Usage
from clew.models import Model
from clew.models.prices import Price, cost
from clew.sessions import Session
from clew.sessions.edits import Drop
from clew.sessions.entries import Compaction, Entry, Failed, Said
from clew.sessions.policy import Policy
from clew.sessions.spans import Index
from clew.sessions.view import Item, View
from clew.tokens import TokenCounter


class Watch:
    """Collects what a replay shows; items are stored once, views as what changed since the last."""

    def __init__(self, excerpt: int) -> None:
        self.excerpt = excerpt
        self.shown: list[Shown] = []
        self._numbers: dict[tuple[str, int, str, int], int] = {}
        self._last: View | None = None

    def moment(self, message: int, view: View, output: int) -> Moment:
        """The view at the model call that gave the recording's message number `message`."""
        same = view.items.common(self._last.items) if self._last else 0
        cached = 0
        if self._last and same == len(self._last.items):
            cached = self._last.tokens
        elif same:
            cached = view.weigh(view.items[:same]) + int(view.overhead * view.scale)
        self._last = view
        return Moment(
            message, view.tokens, cached, output, same, tuple(self._number(item, view) for item in view.items[same:])
        )

    def _number(self, item: Item, view: View) -> int:
        entries = span(item.ids)
        key = (
            entries,
            len(item.ids),
            item.kind,
            item.count,
        )  # not the ids: a late summary stands for thousands of runs
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.shown)
            text = as_text(item.message)
            if len(text) > self.excerpt:
                text = f"{text[: self.excerpt]}\n[… {len(text) - self.excerpt:,} more characters]"
            self.shown.append(Shown(item.message.role, item.kind, view.weigh([item]), text, entries))
        return number


def run_replay(
    messages: Iterable[Message],
    policy: Policy,
    *,
    window: int,
    model: Model,
    counter: TokenCounter,
    price: Price,
    source: str = "",
    label: str = "",
    store: str = "memory://",
    excerpt: int = 1_200,
) -> tuple[Result, Session]:
    """Feeds a recording to a policy and returns the result, and the session it was fed into (open).

    `window` is in tokens of `counter`. `source` and `label` are what the result calls the recording and
    the policy (default: the policy's name). `store` is where the replayed session is kept. `excerpt`
    limits the text kept of each shown message, in characters.

    Usage in the recording only tells how long the replies were: it was reported for other requests
    than the policy makes. Calls whose newest user message alone exceeds the window are listed as
    impossible. Raises `BadBudget` when policy and window do not go together.
    """
    session = Session.open(store, policy=policy, model=model, window=window, counter=counter, title=source)
    budget = policy.budget(window)
    watch = Watch(excerpt)
    moments: list[Moment] = []
    events: list[Compacted | Refused] = []
    spent: list[Usage] = []
    impossible: list[Impossible] = []
    count = 0
    for index, message in enumerate(messages):
        count = index + 1
        if message.role == "assistant" and not message.blank:
            known = session.leaf or 0
            try:
                session.messages()
            except ContextOverflow as error:
                impossible.append(Impossible(index, error.figures["needed"], error.figures["available"], str(error)))
            new = session.branch_after(known)
            spent += [e.body.usage for e in new if isinstance(e.body, Compaction)]
            events += [noted for e in new if (noted := _event(e, index, len(moments)))]
            if not impossible or impossible[-1].message != index:
                output = message.usage.output if message.usage else counter.message(message)
                moments.append(watch.moment(index, session.view, output))
        session.append(replace(message, usage=None) if message.usage else message)
    return (
        Result(
            source=source,
            policy=label or policy.name,
            model=model.name,
            counter=counter.name,
            price=price.name,
            window=window,
            limit=budget.input,
            trigger=budget.trigger,
            messages=count,
            moments=tuple(moments),
            compactions=tuple(e for e in events if isinstance(e, Compacted)),
            failures=tuple(e for e in events if isinstance(e, Refused)),
            fates=fates(session.branch(), session.view),
            items=tuple(watch.shown),
            final=session.view.tokens,
            dollars=bill(moments, spent, price),
            impossible=tuple(impossible),
        ),
        session,
    )


def bill(moments: Sequence[Moment], spent: Sequence[Usage], price: Price) -> float:
    """US dollars for the requests (prefix shared with the last request at the cache-read price, the
    rest at the cache-write price where there is one), the replies, and the policy's own model calls."""
    total = sum(
        cost(Usage(cache_write=m.sent - m.cached, cache_read=m.cached, output=m.output), price) for m in moments
    )
    return total + sum(cost(u, price) for u in spent)


def fates(branch: Sequence[Entry], view: View) -> dict[str, Share]:
    """What has become of every message of the branch, with the tokens it had."""
    index = Index(item.ids for item in view.items)
    totals = {fate: [0, 0] for fate in FATES}
    for entry in branch:
        if isinstance(entry.body, Said):
            found = [_fate(view.items[i]) for i in index.sharing((entry.id,))]
            slot = totals["kept" if "kept" in found else found[0] if found else "dropped"]
            slot[0] += 1
            slot[1] += entry.body.tokens
    return {fate: Share(n, t) for fate, (n, t) in totals.items()}


def _fate(item: Item) -> Fate:
    return "summarised" if item.kind == "summary" else "masked" if item.kind in ("mask", "shrink") else "kept"


def _event(entry: Entry, index: int, call: int) -> Compacted | Refused | None:
    body = entry.body
    if isinstance(body, Failed):
        f = body.failure
        return Refused(index, call, f.reason, f.detail)
    if not isinstance(body, Compaction):
        return None
    texts = [as_text(e.message) for e in body.edits if not isinstance(e, Drop) and e.how == "summary"]
    a = body.account
    return Compacted(
        message=index,
        call=call,
        entry=entry.id,
        reason=body.reason,
        before=body.before,
        after=body.after,
        kept=a.kept,
        summarised=a.summarised,
        masked=a.masked,
        dropped=a.dropped,
        model_calls=body.calls,
        model_tokens=body.usage.total,
        summary="\n\n".join(texts),
    )
