"""QitOS's compaction, on messages of any kind: rounds, previews of long texts, a summary, a cut.

`QitOS` runs it on the items of a view, `clew.history` on the messages of QitOS's own API. The functions are those
of PyPI qitos 0.3.0 as its outputs show them: boundaries, order, figures and formats are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from clew.models.steps import Steps

MIN_PREVIEW = 60
"""A preview never shows less than this many characters (QitOS 0.3.0)."""

M = TypeVar("M")


class Craft(Protocol[M]):
    """What the algorithm must know of the messages it handles, and have done to them."""

    def step(self, message: M) -> int: ...

    def role(self, message: M) -> str: ...

    def tokens(self, message: M) -> int: ...

    def is_summary(self, message: M) -> bool: ...

    def shrunk(self, message: M) -> M:
        """The message as a preview; the same object when it is short enough."""
        ...

    def summary(self, source: Sequence[M], older: Sequence[M]) -> Steps[M]:
        """One message for all of `older`, written from `source`: the same messages, shrunk where they must be."""
        ...


class Stage(Struct, frozen=True):
    """One step the compaction took: its name as in QitOS's events, what it left, and its own figures."""

    name: Literal["microcompact_applied", "summary_compact_applied", "compact_skipped"]
    tokens: int
    messages: int
    figures: Mapping[str, Any]


class Outcome(Struct, Generic[M], frozen=True):
    """What a compaction came to. `untrimmed` is the list before its last step."""

    messages: list[M]
    untrimmed: list[M]
    stages: tuple[Stage, ...]


def round_starts(steps: Sequence[int], roles: Sequence[str]) -> list[int]:
    """Where rounds begin: at each change of step; within a single step at each assistant message but the first."""
    starts = [i for i, step in enumerate(steps) if i == 0 or step != steps[i - 1]]
    if len(starts) > 1:
        return starts
    return starts + [i for i, role in enumerate(roles) if role == "assistant"][1:]


def ends(text: str, head: int, tail: int) -> str:
    """The first `head` and the last `tail` characters of a text, an ellipsis line between them."""
    first, last = text[:head].rstrip(), text[-tail:].lstrip()
    return f"{first}\n...\n{last}" if last and last != first else first


def kind_of(text: str, role: str, source: str = "") -> str:
    """What a preview says it stands for, guessed from the text as QitOS does."""
    lowered = text.lower()
    if any(sign in lowered for sign in ("traceback", "stderr", "stdout", "returncode")):
        return "tool output"
    if any(sign in lowered for sign in ("http", "<html", "```html", "response headers")):
        return "web/file result"
    return f"{source} {role} message" if source else f"{role} message"


def preview(text: str, kind: str, step: int, preview_chars: int) -> str:
    """A long text as its two ends under a line that says what was there."""
    shown = max(MIN_PREVIEW, preview_chars)
    mark = f"[Compacted {kind} from step {step}; original_chars={len(text)}; original_lines={text.count(chr(10)) + 1}]"
    return f"{mark}\n{ends(text, shown, shown // 2)}"


def compacted(
    messages: Sequence[M],
    budget: int,
    craft: Craft[M],
    *,
    keep_rounds: int,
    keep_messages: int | None,
    pending: int = 0,
) -> Steps[Outcome[M]]:
    """Brings messages towards `budget` tokens, `pending` tokens of the coming prompt included.

    The last step leaves `keep_messages` messages at most, fewer over the budget; with None it is left out.
    """

    def weight(some: Sequence[M]) -> int:
        return pending + sum(craft.tokens(m) for m in some)

    before = weight(messages)
    starts = round_starts([craft.step(m) for m in messages], [craft.role(m) for m in messages])
    rounds = max(1, keep_rounds)
    cut = starts[-rounds] if len(starts) > rounds else 0
    older, kept = list(messages[:cut]), list(messages[cut:])
    stages: list[Stage] = []

    small = [craft.shrunk(m) for m in older or kept]
    shorter = small + kept if older else small
    if weight(shorter) < before:
        changed = sum(a is not b for a, b in zip(small, older or kept, strict=True))
        stages.append(Stage("microcompact_applied", weight(shorter), len(shorter), {"messages_compacted": changed}))
    if not older:
        if not stages:
            reason = {"reason": "insufficient_prefix_to_compact"}
            stages.append(Stage("compact_skipped", before, len(messages), reason))
            shorter = kept
        return Outcome(_trimmed(shorter, budget - pending, craft, keep_messages), shorter, tuple(stages))
    if weight(shorter) <= budget:
        return Outcome(shorter, shorter, tuple(stages))

    source = older if weight(older) - pending <= budget else small
    summary = yield from craft.summary(source, older)
    whole = [summary, *kept]
    figures = {"summarized_message_count": len(older), "preserved_round_count": rounds}
    stages.append(Stage("summary_compact_applied", weight(whole), len(whole), figures))
    result = _trimmed(whole, budget - pending, craft, keep_messages)
    return Outcome(result, result, tuple(stages))


def _trimmed(messages: Sequence[M], budget: int, craft: Craft[M], keep: int | None) -> list[M]:
    if keep is None:
        return list(messages)
    head = list(messages[:1]) if messages and craft.is_summary(messages[0]) else []
    rest = list(messages[len(head) :])[-max(1, keep) :]
    held = sum(craft.tokens(m) for m in head + rest)
    while len(rest) > 1 and held > budget:
        held -= craft.tokens(rest.pop(0))
    return head + rest
