"""QitOS 0.3.0: shrink long old messages, then summarise all but the last rounds, then cut to a few messages.

Trigger: the view is over the window less a reserve of 5 % of it, at least 1,024 tokens (`max_tokens` may lower
that). QitOS subtracts the system prompt and the coming prompt from both sides, which is the same.
Kept: the last `keep_last_rounds` rounds, a round being one model call: the prompt, the reply, its tool results.
Replaced: older messages longer than `long_chars` become previews (head and tail). If that is not enough, all
older rounds become one summary, made from the newest `summary_input_messages` of them.
Dropped: what then exceeds `keep_last_messages`, and the oldest of the rest until the budget is met.

Constants: `CompactConfig`, `ContextConfig` and the engine of PyPI qitos 0.3.0. Its defects, kept here because
they are decisions: messages cut by the last step are in no summary; the oldest messages never reach the
summary's request; a huge message in a kept round is never shrunk, so the result may still be over budget;
the last step may part a tool result from its call (here the orphan is dropped and accounted for with it, as
no provider takes it). `lossless` mends the first two, the guard the others.
Two things differ by nature: a session stores the compaction, so the next summary updates this one (QitOS
summarises the raw messages again at every request), and a reply that is no answer raises its typed error
(QitOS takes any text, and makes one up from a template when there is none). The steps taken are in the
compaction's `details`, as `stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.messages import Message, Opaque, Part, Text, Thinking, ToolResult, Usage
from clew.models.steps import Steps
from clew.policies.fences import pinned, summary_message, summary_text
from clew.policies.harness.qitos_rounds import compacted, kind_of, preview, round_starts
from clew.policies.shrink import head_tail
from clew.policies.summarise import summarise
from clew.policies.triggers import above
from clew.sessions.edits import Drop, Edit, Ids, Replace, pack
from clew.sessions.entries import Compaction
from clew.sessions.policy import Due, compaction
from clew.sessions.spans import Spans
from clew.sessions.view import Item, View

MIN_RESERVE = 1024
"""Least safety reserve of a request, in tokens (QitOS 0.3.0, ContextConfig.min_safety_reserve_tokens)."""

RESERVE_RATIO = 0.05
"""Share of the window held back (QitOS 0.3.0, ContextConfig.safety_reserve_ratio)."""


META = "qitos"
"""The key under which a message's `meta` tells QitOS's `step`, if it came through QitOS's API (`clew.history`)."""


def available(window: int, output: int = 0, reserve: int | None = None) -> int:
    """Tokens a prompt may hold in a window: less the reply and a safety reserve, at least 1."""
    held_back = max(int(window * RESERVE_RATIO), MIN_RESERVE) if reserve is None else reserve
    return max(1, window - output - min(held_back, window - output))


class QitOS(Struct, frozen=True):
    """QitOS's policy, unguarded.

    `max_tokens`: limit of the view, in tokens, if it is to be lower than what the window leaves.
    `keep_last_rounds` rounds stay whole, and `keep_last_messages` messages at most are left after a summary.
    `long_chars` and `preview_chars`: above which length an old message becomes a preview, and how much of
    its beginning that shows (half as much of its end). `summary_max_chars`: length of a summary.
    `summary_input_messages`: how many of the summarised messages the model is shown, the newest ones.
    `summary_role`: QitOS gives the summary to the model as a system message.
    `lossless`: keeps only as many of the last rounds as fit, so that nothing is dropped, and shows the model every
    message it summarises.
    """

    max_tokens: int | None = None
    keep_last_rounds: int = 2
    keep_last_messages: int = 8
    long_chars: int = 900
    preview_chars: int = 220
    summary_max_chars: int = 1400
    summary_input_messages: int = 28
    summary_role: Literal["system", "user"] = "system"
    lossless: bool = False

    @property
    def name(self) -> str:
        return "qitos"

    def budget(self, window: int) -> Budget:
        """The window less the safety reserve. Raises `BadBudget` when `max_tokens` is more than that."""
        return Budget.of(window, output=window - available(window), trigger=self.max_tokens or 1.0)

    def due(self, view: View, budget: Budget) -> Due | None:
        """Due when the view is strictly over the limit."""
        return above(view, budget.trigger)

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """Previews, then a summary, then a cut. When the history is within its limit, to half of what it holds."""
        history = _history(view)
        held = sum(item.count for item in history)
        limit = max(1, int(budget.trigger / view.scale) - (view.count + view.overhead - held))
        if due.reason != "threshold":
            limit = min(limit, held // 2)
        craft = _Items(self, view, budget, due.focus, history, self._summary_chars(limit))
        outcome = yield from compacted(
            history,
            limit,
            craft,
            keep_rounds=self._fitting(history, craft, limit) if self.lossless else self.keep_last_rounds,
            keep_messages=None if self.lossless else self.keep_last_messages,
        )
        edits = _edits(history, outcome.messages)
        if not edits:
            return None
        details = {"stages": msgspec.to_builtins(outcome.stages)}
        return compaction(view, edits, due, policy=self.name, calls=craft.calls, usage=craft.usage, details=details)

    def _summary_chars(self, limit: int) -> int:
        """Length of the summary: lossless, it leaves half of the limit to what is kept, in any script."""
        return min(self.summary_max_chars, limit * 2 // 3) if self.lossless else self.summary_max_chars

    def _fitting(self, history: Sequence[Item], craft: _Items, limit: int) -> int:
        """How many of the last rounds are short and small enough to be kept beside a summary; at least 1."""
        room = limit - min(limit // 2, self.summary_max_chars // 2)
        starts = round_starts([craft.step(i) for i in history], [craft.role(i) for i in history])
        for rounds in range(max(1, self.keep_last_rounds), 1, -1):
            kept = history[starts[-rounds] :] if rounds <= len(starts) else history
            if len(kept) <= self.keep_last_messages and sum(i.count for i in kept) <= room:
                return rounds
        return 1


class _Items:
    """The craft for the items of a view. A summary belongs to the round that follows it."""

    def __init__(
        self, policy: QitOS, view: View, budget: Budget, focus: str, history: Sequence[Item], summary_chars: int
    ) -> None:
        self.policy, self.view, self.budget, self.focus = policy, view, budget, focus
        self.summary_chars = summary_chars
        self.steps = _steps(history)
        self.calls, self.usage = 0, Usage()

    def step(self, item: Item) -> int:
        return self.steps[item.ids]

    def role(self, item: Item) -> str:
        return item.message.role

    def tokens(self, item: Item) -> int:
        return item.count

    def is_summary(self, item: Item) -> bool:
        return item.kind == "summary"

    def shrunk(self, item: Item) -> Item:
        if self.is_summary(item):
            return item
        message = self._previews(item.message, self.step(item))
        count = self.view.counter.message(message)
        return Item(message, item.ids, count, "shrink") if count < item.count else item

    def summary(self, source: Sequence[Item], older: Sequence[Item]) -> Steps[Item]:
        shown = older if self.policy.lossless else source
        messages = [i.message for i in shown if not self.is_summary(i)]
        if not self.policy.lossless:
            messages = messages[-self.policy.summary_input_messages :]
        made = yield from summarise(
            self.view,
            messages,
            self.budget,
            max_output=max(self.summary_chars // 2, 1),
            previous="\n\n".join(summary_text(i.message) for i in source if self.is_summary(i)),
            focus=self.focus,
        )
        self.calls, self.usage = made.calls, made.usage
        message = summary_message(pinned(head_tail(made.text, self.summary_chars), self.view.pins))
        message = replace(message, role=self.policy.summary_role)
        return Item(message, _ids(older), self.view.counter.message(message), "summary")

    def _previews(self, message: Message, step: int) -> Message:
        """The message with its long texts as previews; an assistant's thinking goes with the text it led to."""
        parts = tuple(self._preview(p, message.role, step) for p in message.parts)
        if parts == message.parts:
            return message
        if message.role == "assistant":
            parts = tuple(p for p in parts if not isinstance(p, Thinking | Opaque))
        return replace(message, parts=parts)

    def _preview(self, part: Part, role: str, step: int) -> Part:
        if isinstance(part, ToolResult):
            content = tuple(self._short(p, role, step) if isinstance(p, Text) else p for p in part.content)
            return part if content == part.content else replace(part, content=content)
        return self._short(part, role, step) if isinstance(part, Text) else part

    def _short(self, part: Text, role: str, step: int) -> Text:
        if len(part.text) <= self.policy.long_chars:
            return part
        return Text(preview(part.text, kind_of(part.text, role), step, self.policy.preview_chars))


def _history(view: View) -> list[Item]:
    """What the policy works on: everything after the system prompt, without mends."""
    start = 0
    while (
        start < len(view.items) and view.items[start].message.role == "system" and view.items[start].kind != "summary"
    ):
        start += 1
    return [item for item in view.items[start:] if item.kind != "mend"]


def _steps(history: Sequence[Item]) -> dict[Ids, int]:
    """The step each item belongs to, as its message tells; else the number of its model call.

    A prompt opens the call of the reply that follows it. A summary belongs to what follows it.
    """
    told = [item.message.meta.get(META, {}).get("step") for item in history]
    steps: dict[Ids, int] = {}
    if any(step is not None for step in told):
        after = 0
        for item, step in zip(reversed(history), reversed(told), strict=True):
            after = after if step is None else step
            steps[item.ids] = after
        return steps
    call, opened = 0, True
    for item in history:
        opens = item.kind == "summary" or item.message.role in ("user", "system")
        if not opened and (opens or item.message.role == "assistant"):
            call += 1
        opened = opens
        steps[item.ids] = call
    return steps


def _edits(history: Sequence[Item], result: Sequence[Item]) -> list[Edit]:
    """The edits that turn one list into the other. Results left without their call are dropped with it."""
    edits: list[Edit] = []
    known = {id(item) for item in history}
    stands = Spans()
    open_calls: set[str] = set()
    for item in result:
        open_calls.update(call.id for call in item.message.calls)
        if item.message.role == "tool" and not any(r.call_id in open_calls for r in item.message.results):
            continue
        stands.add(item.ids)
        if id(item) not in known and (item.kind == "summary" or item.kind == "shrink"):
            edits.append(Replace(pack(item.ids), item.message, how=item.kind))
    gone = Spans(i for item in history for i in item.ids).without(stands.ids)
    return [Drop(gone), *edits] if gone else edits


def _ids(items: Sequence[Item]) -> Ids:
    return pack(i for item in items for i in item.ids)
