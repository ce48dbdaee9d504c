"""What QitOS's `CompactHistory` shows (0.3.0): the algorithm of `clew.policies.harness.qitos` over its messages."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from clew.history.messages import HistoryMessage, Query
from clew.history.raw import Occasion, Shown, summarised, tokens_of, weight
from clew.models.steps import Steps
from clew.policies.harness.qitos_rounds import compacted, kind_of, preview

NOTE_CHARS = 160
"""Length of a line of the template summary, in characters (QitOS 0.3.0)."""


class CompactConfig(Struct):
    """The settings of a `CompactHistory`, with QitOS's names and defaults.

    `max_tokens`: budget of the history, in tokens, when the query names none. `hard_window`: stored messages at
    most. `warning_ratio`: share of the budget from which a `warning` event is sent. Lengths are in characters.
    """

    max_tokens: int = 16_000
    keep_last_rounds: int = 2
    keep_last_messages: int = 8
    hard_window: int = 96
    warning_ratio: float = 0.8
    auto_compact: bool = True
    compact_long_messages_over_chars: int = 900
    microcompact_preview_chars: int = 220
    summary_max_chars: int = 1400
    summary_input_message_limit: int = 28
    summary_metadata_source: str = "compact_history"
    emit_skipped_events: bool = True


class CompactRaw(Struct, frozen=True):
    """The strategy of a faithful `CompactHistory`, and the craft its algorithm needs for history messages."""

    config: CompactConfig

    @property
    def stored(self) -> int:
        return self.config.hard_window

    @property
    def items(self) -> int:
        return 0

    def show(self, items: list[HistoryMessage], query: Query) -> Steps[Shown]:
        config = self.config
        budget = int(query.get("max_tokens") or config.max_tokens)
        pending = tokens_of(query.get("pending_content"))
        before = weight(items) + pending
        occasion = Occasion("compact_history", len(items), before, pending, budget, config.warning_ratio)
        threshold = max(1, int(budget * config.warning_ratio))
        warned = before >= threshold
        events = [occasion.event("warning", warning_threshold=threshold)] if warned else []
        if budget <= 0 or before <= budget:
            if config.emit_skipped_events or not warned:
                events.append(occasion.event("within_budget", reason="within_budget"))
            return Shown(items, events, items)
        if not query.get("auto_compact", config.auto_compact):
            if config.emit_skipped_events:
                events.append(occasion.event("compact_skipped", reason="auto_compact_disabled"))
            return Shown(items, events, items)
        outcome = yield from compacted(
            items,
            budget,
            self,
            keep_rounds=config.keep_last_rounds,
            keep_messages=config.keep_last_messages,
            pending=pending,
        )
        for stage in outcome.stages:
            if stage.name != "compact_skipped" or config.emit_skipped_events:
                events.append(occasion.event(stage.name, stage.tokens, stage.messages, **stage.figures))
        return Shown(outcome.messages, events, outcome.untrimmed)

    def digest(self, items: list[HistoryMessage]) -> Steps[str]:
        return self._text(items)

    def step(self, message: HistoryMessage) -> int:
        return message.step_id

    def role(self, message: HistoryMessage) -> str:
        return message.role

    def tokens(self, message: HistoryMessage) -> int:
        return tokens_of(message.content)

    def is_summary(self, message: HistoryMessage) -> bool:
        return message.is_summary

    def shrunk(self, message: HistoryMessage) -> HistoryMessage:
        text = message.text
        if message.is_summary or len(text) <= self.config.compact_long_messages_over_chars:
            return message
        source = str(message.metadata.get("source", "")).strip().lower()
        kind = kind_of(text, message.role, source)
        mark = {
            "compacted": True,
            "compaction_mode": "micro",
            "original_chars": len(text),
            "original_lines": text.count("\n") + 1,
        }
        short = preview(text, kind, message.step_id, self.config.microcompact_preview_chars)
        return replace(message, content=short, metadata={**message.metadata, **mark})

    def summary(self, source: Sequence[HistoryMessage], older: Sequence[HistoryMessage]) -> Steps[HistoryMessage]:
        text = yield from self._text(source)
        metadata = {
            "summary": True,
            "source": self.config.summary_metadata_source,
            "summarized_message_count": len(older),
            "summarized_through_step": older[-1].step_id,
        }
        return HistoryMessage("system", text, older[-1].step_id, metadata)

    def _text(self, messages: Sequence[HistoryMessage]) -> Steps[str]:
        if not messages:
            return ""
        limit = self.config.summary_max_chars
        text = yield from summarised(messages[-self.config.summary_input_message_limit :])
        return (text or template(messages))[:limit]


def template(messages: Sequence[HistoryMessage]) -> str:
    """The summary QitOS writes without a model: goal, findings, the attempt before, and where to go on."""
    goal = next((n for n in _notes(messages, "user")), "")
    replies = _notes(messages, "assistant")
    lines = ["Continuation summary of earlier context:"]
    if goal:
        lines.append(f"- Goal: {goal}")
    if replies:
        lines.append(f"- Findings: {replies[-1]}")
    if len(replies) > 1:
        lines.append(f"- Prior attempt: {replies[-2]}")
    lines.append(f"- Pending: Continue from step {messages[-1].step_id} with the latest trajectory in mind.")
    return "\n".join(lines)


def _notes(messages: Sequence[HistoryMessage], role: str) -> list[str]:
    texts = (m.text.strip() for m in messages if m.role == role)
    return [t.replace("\n", " ")[:NOTE_CHARS] for t in texts if t]
