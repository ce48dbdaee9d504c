"""Replays a recorded conversation under a context policy, as if the agent had run with it.

Every assistant message of the recording is one model call. Before each, the policy compacts when it
is due; what the model would have seen is noted, then the recorded reply is appended and the replay
goes on. Nothing is sent anywhere, except summaries when a real model is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from clew.errors import ContextOverflow
from clew.lab.plain import as_text, span
from clew.messages import Message, Usage
from clew.models import Model
from clew.models.prices import Price, cost
from clew.sessions import Session
from clew.sessions.edits import Drop
from clew.sessions.entries import Compaction, Entry, Failed, Said
from clew.sessions.policy import Policy
from clew.sessions.view import Item, View
from clew.tokens import TokenCounter

Fate = Literal["kept", "summarised", "masked", "dropped"]
FATES: tuple[Fate, ...] = ("kept", "summarised", "masked", "dropped")


class Moment(Struct, frozen=True):
    """One model call of the recording, as the policy would have made it.

    `message` is the index of the recorded reply, `sent` the request in tokens, `cached` the part of
    it that begins like the request before (what a provider's prompt cache can serve), `output` the
    reply in tokens. The view is the first `same` items of the view before, then the items numbered
    in `new` (see `Result.items`).
    """

    message: int
    sent: int
    cached: int
    output: int
    same: int
    new: tuple[int, ...]


class Compacted(Struct, frozen=True):
    """A compaction during the replay: before which message, tokens before and after, and the account."""

    message: int
    call: int
    entry: int
    reason: str
    before: int
    after: int
    kept: int
    summarised: int
    masked: int
    dropped: int
    model_calls: int
    model_tokens: int
    summary: str = ""


class Refused(Struct, frozen=True):
    """An attempt that did not count, and why."""

    message: int
    call: int
    reason: str
    detail: str


class Impossible(Struct, frozen=True):
    """A model call that could not have been made: what can never be left out exceeds the window (tokens)."""

    message: int
    needed: int
    available: int
    why: str


class Shown(Struct, frozen=True):
    """A message as it stood in some view."""

    role: str
    kind: str
    tokens: int
    text: str
    entries: str = ""


class Share(Struct, frozen=True):
    """How many recorded messages met a fate by the end, and their tokens."""

    messages: int = 0
    tokens: int = 0


class Result(Struct, frozen=True):
    """What a policy made of a recording. All figures in tokens of `counter` unless they say otherwise."""

    source: str
    policy: str
    model: str
    counter: str
    price: str
    window: int
    limit: int
    trigger: int
    messages: int
    moments: tuple[Moment, ...]
    compactions: tuple[Compacted, ...]
    failures: tuple[Refused, ...]
    fates: dict[str, Share]
    items: tuple[Shown, ...]
    final: int
    dollars: float
    impossible: tuple[Impossible, ...] = ()

    @property
    def sent(self) -> int:
        """Tokens sent in all requests together."""
        return sum(m.sent for m in self.moments)

    @property
    def output(self) -> int:
        """Tokens of all replies."""
        return sum(m.output for m in self.moments)

    @property
    def peak(self) -> int:
        """The largest request."""
        return max((m.sent for m in self.moments), default=0)

    @property
    def mean(self) -> int:
        """The mean request."""
        return self.sent // len(self.moments) if self.moments else 0

    @property
    def cache_hits(self) -> float:
        """Share of the sent tokens that a prompt cache could serve, 0 to 1."""
        return sum(m.cached for m in self.moments) / self.sent if self.sent else 0.0


class Watch:
    """Collects what a replay shows; items are stored once, views as what changed since the last."""

    def __init__(self, excerpt: int) -> None:
        self.excerpt = excerpt
        self.shown: list[Shown] = []
        self._numbers: dict[tuple[tuple[int, ...], str, int], int] = {}
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
        key = (item.ids, item.kind, item.count)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.shown)
            text = as_text(item.message)
            if len(text) > self.excerpt:
                text = f"{text[: self.excerpt]}\n[… {len(text) - self.excerpt:,} more characters]"
            self.shown.append(Shown(item.message.role, item.kind, view.weigh([item]), text, span(item.ids)))
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
    place: dict[int, Fate] = {}
    for item in view.items:
        fate: Fate = "summarised" if item.kind == "summary" else "masked" if item.kind in ("mask", "shrink") else "kept"
        for i in item.ids:
            if fate == "kept" or i not in place:
                place[i] = fate
    totals = {fate: [0, 0] for fate in FATES}
    for entry in branch:
        if isinstance(entry.body, Said):
            slot = totals[place.get(entry.id, "dropped")]
            slot[0] += 1
            slot[1] += entry.body.tokens
    return {fate: Share(n, t) for fate, (n, t) in totals.items()}


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
