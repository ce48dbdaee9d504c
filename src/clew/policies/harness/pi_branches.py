"""Pi's branch summaries: what was left behind when the conversation goes on from another entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from clew.messages import Message, Text
from clew.models.base import Reply
from clew.models.steps import Steps
from clew.policies.harness.pi_cut import Files
from clew.policies.harness.pi_entries import PiEntry, Version
from clew.policies.harness.pi_summary import Summary, answer, branch_text, file_tags, request
from clew.sessions.edits import Insert, Replace
from clew.sessions.entries import BranchSummary, Compaction, Entry, Said
from clew.tokens.protocol import TokenCounter

Id = TypeVar("Id")

OUTPUT = 2_048
"""Reply limit of a branch summary in 0.73.1, in tokens; 1.6 sets none."""

RESERVE = 16_384
"""What the branch's text leaves free of the window, in tokens (both versions)."""

NO_WINDOW = 128_000
"""The window assumed when the model's is unknown, in tokens."""

PREAMBLE = "Before this point another line of work was tried and left. What happened on it:\n\n"


def collect(parents: Mapping[Id, Id | None], old: Id | None, target: Id) -> tuple[list[Id], Id | None]:
    """What is left behind going from `old` to `target`: the ids in order, and the deepest common ancestor.

    `parents` gives each entry's parent. Compactions are no boundary.
    """
    if old is None:
        return [], None
    left = _line(parents, old)
    ancestor = next((i for i in _line(parents, target) if i in left), None)
    gone = list(left)
    return gone[: gone.index(ancestor)][::-1] if ancestor is not None else gone[::-1], ancestor


def _line(parents: Mapping[Id, Id | None], leaf: Id) -> dict[Id, None]:
    """The entries from a leaf to its root."""
    line: dict[Id, None] = {}
    current: Id | None = leaf
    while current is not None and current in parents and current not in line:
        line[current] = None
        current = parents[current]
    return line


class Branch(Struct, frozen=True):
    """What of a branch is summarised, and its size in tokens."""

    entries: tuple[PiEntry, ...]
    files: Files
    tokens: int


def prepare_branch(entries: Sequence[PiEntry], budget: int) -> Branch:
    """The newest entries that fit in `budget` tokens (0: no limit), tool results left out.

    The first that does not fit ends it; a summary is taken nevertheless while less than nine tenths
    are used. File lists come from every nested branch summary and from each call looked at, that of
    the entry that does not fit included; those of compactions are not read (a defect of both versions).
    """
    files = Files()
    for entry in entries:
        if entry.kind == "branch_summary":
            files = files.noted(entry.details)
    taken: list[PiEntry] = []
    total = 0
    for entry in reversed(entries):
        if not entry.role or entry.role == "toolResult":
            continue
        files = files.called(entry.message)
        fits = budget <= 0 or total + entry.tokens <= budget
        summary = entry.kind in ("compaction", "branch_summary")
        if fits or (summary and total < budget * 0.9):
            taken.append(entry)
            total += entry.tokens
        if not fits:
            break
    return Branch(tuple(reversed(taken)), files, total)


def summarise_branch(
    entries: Sequence[PiEntry],
    window: int,
    version: Version,
    *,
    reserve: int = RESERVE,
    focus: str = "",
    instructions: str = "",
) -> Steps[Summary | None]:
    """The summary of a branch's entries; None, and no call, when they hold nothing to summarise.

    `instructions` replace the prompt. (0.73.1 stores a fixed text instead of nothing.)
    """
    branch = prepare_branch(entries, (window or NO_WINDOW) - reserve)
    if not branch.entries:
        return None
    limit = OUTPUT if version == "0.73.1" else None
    reply: Reply = yield request("branch", branch.entries, version, limit, "", focus, instructions)
    text = PREAMBLE + answer(reply, version) + file_tags(branch.files)
    return Summary(text, branch.files, 1, reply.usage)


def branch_summary(
    left: Sequence[Entry],
    counter: TokenCounter,
    window: int,
    *,
    version: Version = "1.6",
    focus: str = "",
) -> Steps[BranchSummary | None]:
    """The entry that tells a conversation what happened on the branch it leaves.

    `left` are the log entries of that branch after the common ancestor, oldest first (`collect`
    finds them). In windows too small for Pi's reserve a quarter of the window is reserved.
    None when there is nothing to tell. Raises the `ModelError` of an unusable reply.
    """
    entries = [e for entry in left for e in _logged(entry, counter)]
    summary = yield from summarise_branch(entries, window, version, reserve=min(RESERVE, window // 4), focus=focus)
    if summary is None:
        return None
    return BranchSummary(
        Message("user", (Text(branch_text(summary.text)),), meta={"clew": {"branch": True, "summary": summary.text}}),
        left[-1].id,
        summary.details,
    )


def _logged(entry: Entry, counter: TokenCounter) -> Iterable[PiEntry]:
    """A log entry as Pi reads it."""
    body = entry.body
    if isinstance(body, Said):
        role = "toolResult" if body.message.role == "tool" else body.message.role
        yield PiEntry(entry.id, "message", role, body.message, counter.message(body.message))
    elif isinstance(body, BranchSummary):
        yield PiEntry(
            entry.id,
            "branch_summary",
            "branchSummary",
            body.message,
            counter.message(body.message),
            summary=body.message.text,
            details=body.details,
        )
    elif isinstance(body, Compaction):
        for edit in body.edits:
            if isinstance(edit, Replace | Insert) and edit.how == "summary":
                yield PiEntry(
                    entry.id,
                    "compaction",
                    "compactionSummary",
                    edit.message,
                    counter.message(edit.message),
                    summary=edit.message.text,
                    details=body.details,
                )
