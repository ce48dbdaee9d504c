"""What a summary holds: the digest of a conversation, section by section."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

V = TypeVar("V")


class Section(StrEnum):
    """The sections of a summary, in the order they are written."""

    TASK = "task"
    EARLIER = "earlier"
    RULES = "rules"
    FOCUS = "focus"
    REQUESTS = "requests"
    DECISIONS = "decisions"
    FACTS = "facts"
    CHANGED = "changed"
    READ = "read"
    COMMITS = "commits"
    COMMANDS = "commands"
    FIXED = "fixed"
    FAILING = "failing"
    QUESTIONS = "questions"
    PLAN = "plan"
    STATE = "state"


LATEST_ONLY = frozenset({Section.PLAN, Section.STATE})
"""Sections that tell how things stand: what is newer replaces what was."""


MOST_FAILING = 50
"""Failures that are held open: every success is held against each of them."""


class Ran(Struct, frozen=True):
    """A command: how its last run ended ("exit 0", "error", "" when unknown), what it printed that matters
    (error lines of a failed one), and how often it ran."""

    status: str
    lines: tuple[str, ...] = ()
    times: int = 1


class Digest(Struct):
    """The digest of a conversation, filled in while it is read from the first message to the last.

    Every table is ordered by when a thing was last seen, newest last, and holds it once. `messages`
    is how many messages it stands for, `language` that of the summary it was parsed from ("" if it
    was not), `asked` says that requests were read since.
    """

    messages: int = 0
    language: str = ""
    asked: bool = False
    quotes: dict[Section, dict[str, None]] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    commands: dict[str, Ran] = field(default_factory=dict)
    failing: dict[str, Ran] = field(default_factory=dict)
    fixed: dict[str, Ran] = field(default_factory=dict)

    def quote(self, section: Section, text: str) -> None:
        """Notes a text under a section; one that is there already becomes the newest."""
        if text:
            renew(self.quotes.setdefault(section, {}), text, None)

    def only(self, section: Section, *texts: str) -> None:
        """Makes these the section's only texts."""
        self.quotes[section] = dict.fromkeys(t for t in texts if t)

    def quoted(self, section: Section) -> list[str]:
        """The section's texts, newest last."""
        return list(self.quotes.get(section, ()))

    def touch(self, path: str, *, changed: bool, times: int = 1) -> None:
        """Notes that a file was changed or read."""
        table = self.changed if changed else self.read
        renew(table, path, table.get(path, 0) + times)

    def ran(self, command: str, run: Ran) -> None:
        """Notes a run of a command."""
        before = self.commands.get(command)
        renew(self.commands, command, replace(run, times=run.times + (before.times if before else 0)))

    def failed(self, command: str, run: Ran) -> None:
        """Notes a failure; it stands until `solved`."""
        self.fixed.pop(command, None)
        renew(self.failing, command, run)
        if len(self.failing) > MOST_FAILING:
            del self.failing[next(iter(self.failing))]

    def solved(self, command: str) -> None:
        """Moves a failure to the resolved ones."""
        renew(self.fixed, command, self.failing.pop(command))

    def followed_by(self, later: Digest) -> Digest:
        """This digest with a later one's contents noted after its own."""
        for section, texts in later.quotes.items():
            if section in LATEST_ONLY and texts:
                self.only(section, *texts)
            for text in texts:
                self.quote(Section.REQUESTS if section is Section.TASK and self.quoted(section) else section, text)
        for path, times in later.changed.items():
            self.touch(path, changed=True, times=times)
        for path, times in later.read.items():
            self.touch(path, changed=False, times=times)
        for command, run in later.commands.items():
            self.ran(command, run)
        for command, run in later.failing.items():
            self.failed(command, run)
        for command, run in later.fixed.items():
            renew(self.fixed, command, run)
            self.failing.pop(command, None)
        self.messages += later.messages
        self.asked = self.asked or later.asked
        return self


def renew(table: dict[str, V], key: str, value: V) -> None:
    """Sets a key and makes it the table's newest."""
    table.pop(key, None)
    table[key] = value
