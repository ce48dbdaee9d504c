"""Reads a conversation into a digest, one message after the other."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field

from clew.messages import Message, ToolResult
from clew.models.extractive import shell, speech
from clew.models.extractive.actions import Action, Outcome, action, command_action, outcome, outcome_of
from clew.models.extractive.digest import Digest, Ran, Section
from clew.models.extractive.form import is_summary, parse
from clew.models.extractive.markers import DECIDED, LENIENT, OPEN, QUESTION, REASON, SETTING, STRICT, VALUE

_OBSERVATION = re.compile(r"^\s*(?:<returncode>|<output>|EXECUTION RESULT of|OBSERVATION:|Observation:|\[The command )")
"""User messages in which harnesses without tool calls hand back a command's output (mini-swe-agent, SWE-agent,
OpenHands)."""
_BLOCK = re.compile(r"^```(?:bash|sh|shell|mswea_bash_command)\s*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[^\W_]{4,}|[\u3040-\u9fff\uac00-\ud7af]{2}")
FOCUS_SHARE = 3
"""A sentence is in focus when it has at least one in so many words of the focus."""
LONGEST = 20_000
"""Characters of one message's text that are carried into the digest, half from either end."""


class Reader(Struct):
    """Fills a digest from messages; what it keeps beside it is what later messages refer back to."""

    digest: Digest
    focus: frozenset[str] = frozenset()
    waiting: dict[str, Action] = field(default_factory=dict)
    command: str = ""
    requested: bool = False

    @classmethod
    def after(cls, digest: Digest, focus: str) -> Reader:
        """A reader that goes on from a digest. Sentences that were not written out because a text
        above them held them are taken from that text again."""
        reader = cls(digest, words(focus))
        digest.quotes.pop(Section.FOCUS, None)
        older = digest.quotes.pop(Section.RULES, {}), digest.quotes.pop(Section.FACTS, {})
        for said in digest.quoted(Section.TASK):
            reader.stated_by_user(said)
        for section, texts in zip((Section.RULES, Section.FACTS), older, strict=True):
            for text in texts:
                digest.quote(section, text)
        for said in digest.quoted(Section.REQUESTS):
            reader.stated_by_user(said)
        return reader

    def read(self, messages: Iterable[Message]) -> Digest:
        """The digest after these messages."""
        for message in messages:
            if message.role == "user":
                self._user(message)
            elif message.role == "assistant":
                self._assistant(message)
            elif message.role == "tool":
                for result in message.results:
                    self._result(result)
            self.digest.messages += message.role != "system"
        return self.digest

    def _user(self, message: Message) -> None:
        text = message.text
        if is_summary(text):
            self._summary(text)
        elif _OBSERVATION.match(text):
            self._observed(text)
        else:
            self._request(text, len(message.images))

    def _summary(self, text: str) -> None:
        """An earlier summary of this kind in the conversation: what it holds comes before what is read here."""
        earlier = parse(text)
        self.digest = earlier.followed_by(self.digest)
        self.digest.messages -= 1

    def _request(self, text: str, images: int) -> None:
        said = speech.spoken(bounded(text))
        if not said and not images:
            return
        first = not self.digest.quoted(Section.TASK)
        marked = " ".join([said, *["[image]"] * images]).strip()
        self.digest.quote(Section.TASK if first else Section.REQUESTS, marked)
        self.digest.only(Section.QUESTIONS)
        self.requested = self.digest.asked = True
        self.stated_by_user(said)
        for sentence in speech.sentences(said):
            if DECIDED.search(sentence) and not QUESTION.search(sentence):
                self.digest.quote(Section.DECISIONS, sentence)
            if QUESTION.search(sentence):
                self.digest.quote(Section.QUESTIONS, sentence)
            self._in_focus(sentence)

    def stated_by_user(self, said: str) -> None:
        """Takes rules and facts from what the user said."""
        for sentence in speech.sentences(said):
            if (STRICT.search(sentence) or LENIENT.search(sentence)) and not QUESTION.search(sentence):
                self.digest.quote(Section.RULES, sentence)
                continue
            for clause in speech.clauses(sentence):
                if VALUE.search(clause):
                    self.digest.quote(Section.FACTS, clause)

    def _assistant(self, message: Message) -> None:
        said = speech.plain(bounded(message.text)).strip()
        if said:
            if self.requested:
                self.digest.only(Section.QUESTIONS)
                self.requested = False
            self.digest.only(Section.STATE, said)
            for sentence in speech.sentences(said):
                self._stated(sentence)
            for command in _BLOCK.findall(said)[-1:]:
                self.command = command.strip()
        for call in message.calls:
            self._call(call.id, action(call))

    def _stated(self, sentence: str) -> None:
        if QUESTION.search(sentence) or OPEN.search(sentence):
            self.digest.quote(Section.QUESTIONS, sentence)
        elif (DECIDED.search(sentence) or REASON.search(sentence)) and not sentence.endswith((":", "：")):
            self.digest.quote(Section.DECISIONS, sentence)
        elif SETTING.search(sentence):
            self.digest.quote(Section.FACTS, sentence)
        self._in_focus(sentence)

    def _in_focus(self, sentence: str) -> None:
        if self.focus and len(self.focus & words(sentence)) * FOCUS_SHARE >= len(self.focus):
            self.digest.quote(Section.FOCUS, sentence)

    def _call(self, call_id: str, did: Action) -> None:
        self.waiting[call_id] = did
        if did.plan:
            self.digest.only(Section.PLAN, *did.plan)

    def _result(self, result: ToolResult) -> None:
        did = self.waiting.pop(result.call_id, None) or Action(result.name or "tool")
        self._ended(did, outcome_of(result, did))

    def _observed(self, text: str) -> None:
        did = command_action(self.command) if self.command else Action("command", "command")
        self.command = ""
        self._ended(did, outcome(speech.plain(text), is_error=False, ran=True))

    def _ended(self, did: Action, how: Outcome) -> None:
        digest = self.digest
        name = speech.plain(did.label)
        run = Ran(how.status, tuple(map(speech.plain, how.errors or ((how.last,) if how.last else ()))))
        if not how.failed or did.command:
            for path in did.changed:
                digest.touch(path, changed=True)
            for path in did.read:
                digest.touch(path, changed=False)
        if how.failed:
            digest.failed(name, run)
        else:
            for earlier in [e for e in digest.failing if shell.covers(name, e)]:
                digest.solved(earlier)
            for title in did.commits:
                digest.quote(Section.COMMITS, speech.plain(title))
        if did.notable:
            digest.ran(name, run)


def words(text: str) -> frozenset[str]:
    """The words of a text, for matching a focus: of four letters up, pairs of characters in CJK."""
    found = set(_WORD.findall(text.lower()))
    for run in re.findall(r"[\u3040-\u9fff\uac00-\ud7af]{3,}", text):
        found.update(run[i : i + 2] for i in range(len(run) - 1))
    return frozenset(found)


def bounded(text: str) -> str:
    """The text, or its two ends when it is huge."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} […] {text[-LONGEST // 2 :]}"
