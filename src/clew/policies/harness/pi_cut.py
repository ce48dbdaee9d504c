"""Pi's decisions: where the cut goes, and what the summary is about."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from clew.messages import Message
from clew.policies.harness.pi_entries import PiEntry, Version, branch_fill, newest_compaction, projected

CUT_ROLES = frozenset({"user", "assistant", "bashExecution", "custom", "branchSummary", "compactionSummary"})
"""Roles a kept part may begin with. Never a tool result: it must follow its call."""

TURN_ROLES = CUT_ROLES - {"assistant"}
"""Roles that begin a turn in 1.6. In 0.73.1 only some do, see `_begins_turn`."""


class Cut(Struct, frozen=True):
    """The first kept entry and, when it lies inside a turn, the entry that began the turn."""

    first_kept: int
    turn_start: int | None = None

    @property
    def splits(self) -> bool:
        """Whether a turn is split: its beginning is summarised on its own."""
        return self.turn_start is not None


def find_cut(entries: Sequence[PiEntry], start: int, end: int, keep: int, version: Version) -> Cut:
    """Where to cut `entries[start:end]` so that about `keep` tokens stay.

    Goes back from the newest entry until `keep` tokens are reached, then takes the next entry that
    may begin the kept part, together with the metadata directly before it.

    Defects of upstream, reproduced: when the newest tool results alone exceed `keep`, 0.73.1 keeps
    everything; in both versions metadata directly before a user message (a model change, a label)
    is taken for the middle of a turn, so that the whole turn before it counts as a split one.
    """
    candidates = [i for i in range(start, end) if _may_begin(entries[i], version)]
    if not candidates:
        return Cut(start)
    cut = candidates[0]
    total = 0
    for i in range(end - 1, start - 1, -1):
        if not _counts(entries[i], version):
            continue
        total += entries[i].tokens
        if total >= keep:
            after = bisect_left(candidates, i)
            if after < len(candidates):
                cut = candidates[after]
            elif version != "0.73.1":
                cut = candidates[-1]
            break
    while cut > start and _slides(entries[cut - 1], version):
        cut -= 1
    first = entries[cut]
    if first.role == "user" if version == "0.73.1" else _begins_turn(first, version):
        return Cut(cut)
    return Cut(cut, next((i for i in range(cut, start - 1, -1) if _begins_turn(entries[i], version)), None))


def _may_begin(entry: PiEntry, version: Version) -> bool:
    if version == "0.73.1":
        return entry.kind in ("custom_message", "branch_summary") or (
            entry.kind == "message" and entry.role in CUT_ROLES
        )
    return entry.kind != "compaction" and entry.shown and entry.role in CUT_ROLES


def _counts(entry: PiEntry, version: Version) -> bool:
    if version == "0.73.1":
        return entry.kind == "message"
    return entry.shown and entry.tokens > 0


def _slides(entry: PiEntry, version: Version) -> bool:
    if entry.kind == "compaction":
        return False
    return entry.kind != "message" if version == "0.73.1" else not entry.shown


def _begins_turn(entry: PiEntry, version: Version) -> bool:
    if version == "0.73.1":
        return entry.kind in ("custom_message", "branch_summary") or (
            entry.kind == "message" and entry.role in ("user", "bashExecution")
        )
    return entry.kind != "compaction" and entry.shown and entry.role in TURN_ROLES


# What the summary is about


class Files(Struct, frozen=True):
    """Paths read, written and edited, each in the order first seen."""

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()

    def noted(self, details: Mapping[str, Any]) -> Files:
        """With the lists of an earlier summary; what it modified counts as edited."""
        return Files(
            _joined(self.read, _paths(details.get("readFiles"))),
            self.written,
            _joined(self.edited, _paths(details.get("modifiedFiles"))),
        )

    def called(self, message: Message | None) -> Files:
        """With the files of a reply's calls: tools named exactly read, write, edit with a `path`.

        Results are not looked at, so a failed edit counts; paths are taken as written.
        """
        found: dict[str, list[str]] = {"read": [], "write": [], "edit": []}
        for call in message.calls if message else ():
            target = (arguments(call.arguments) or {}).get("path") if call.name in found else None
            if isinstance(target, str) and target:
                found[call.name].append(target)
        if not any(found.values()):
            return self
        return Files(
            _joined(self.read, found["read"]),
            _joined(self.written, found["write"]),
            _joined(self.edited, found["edit"]),
        )

    @property
    def modified_files(self) -> list[str]:
        """Sorted; a path ever modified is never among the read ones."""
        return sorted({*self.edited, *self.written}, key=_utf16)

    @property
    def read_files(self) -> list[str]:
        """Paths only read, sorted."""
        return sorted({*self.read} - {*self.edited, *self.written}, key=_utf16)


def arguments(text: str) -> dict[str, Any] | None:
    """A call's arguments; None when they are not a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _joined(known: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *more)))


def _paths(value: Any) -> list[str]:
    return [p for p in value if isinstance(p, str)] if isinstance(value, list | tuple) else []


def _utf16(text: str) -> bytes:
    """Sort key of JavaScript's order: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


class Preparation(Struct, frozen=True):
    """A compaction decided on: what is summarised, what stays.

    `history` is summarised as a whole, updating `previous`; `prefix` is the beginning of the turn
    that the cut splits. `tokens` is the fill before.
    """

    first_kept: PiEntry
    history: tuple[PiEntry, ...]
    prefix: tuple[PiEntry, ...]
    splits: bool
    tokens: int
    previous: str | None
    files: Files


def prepare(branch: Sequence[PiEntry], keep: int, version: Version) -> Preparation | None:
    """Decides a compaction of a branch that keeps about `keep` tokens; None when it just was compacted.

    What the newest compaction kept is summarised again. Defect of 0.73.1: a branch that fits in
    `keep` is compacted too, with nothing in `history`; 1.6 gives None.
    """
    if not branch or branch[-1].kind == "compaction":
        return None
    entries, compaction, start = _range(branch, version)
    cut = find_cut(entries, start, len(entries), keep, version)
    if cut.first_kept >= len(entries) or not entries[cut.first_kept].id:
        return None
    begin = cut.first_kept if cut.turn_start is None else cut.turn_start
    history = _said(entries[start:begin], version)
    prefix = _said(entries[begin : cut.first_kept], version)
    if version != "0.73.1" and not history and not prefix:
        return None
    files = Files().noted(compaction.details) if compaction else Files()
    for entry in (*history, *prefix):
        files = files.called(entry.message)
    return Preparation(
        entries[cut.first_kept],
        history,
        prefix,
        cut.splits,
        branch_fill(branch, version).tokens,
        compaction.summary if compaction else None,
        files,
    )


def _range(branch: Sequence[PiEntry], version: Version) -> tuple[Sequence[PiEntry], PiEntry | None, int]:
    """The entries to cut, the compaction they follow, and where they begin."""
    newest = newest_compaction(branch)
    if newest is None:
        return branch, None, 0
    compaction = branch[newest]
    if version != "0.73.1":
        return projected(branch, version), compaction, 1
    kept = next((i for i, e in enumerate(branch) if e.id == compaction.first_kept), newest + 1)
    return branch, compaction, kept


def _said(entries: Iterable[PiEntry], version: Version) -> tuple[PiEntry, ...]:
    """The entries with something to summarise. An empty branch summary counts in 0.73.1."""
    return tuple(
        e
        for e in entries
        if e.role and e.kind != "compaction" and (version == "0.73.1" or (e.shown and e.role != "system"))
    )
