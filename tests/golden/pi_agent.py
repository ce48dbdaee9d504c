"""Pi's agent loop, driven on Clew's sessions: prompts, replies, compactions after a run and after an overflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from clew.errors import ModelError
from clew.models import Steps
from clew.policies import triggers
from clew.policies.harness import pi, pi_cut, pi_entries, pi_log
from clew.policies.harness.pi_entries import PiEntry, Version
from clew.sessions.edits import Insert, Replace
from clew.sessions.entries import Compaction, Draft, Entry, Note
from clew.sessions.overflow import is_overflow
from clew.sessions.policy import Due, Policy, Reason
from clew.sessions.session import Session
from clew.sessions.view import View, project
from golden.pi_sessions import Aliases, Numbered, PiCounter, said

Json = dict[str, Any]


class Vetoed(Struct, frozen=True):
    """A policy whose every compaction is turned down (a `session_before_compact` hook that cancels)."""

    policy: Policy

    @property
    def name(self) -> str:
        return self.policy.name

    def budget(self, window: int) -> Any:
        return self.policy.budget(window)

    def due(self, view: View, budget: Any) -> Due | None:
        return self.policy.due(view, budget)

    def compact(self, view: View, budget: Any, due: Due) -> Steps[Compaction | None]:
        yield from ()
        return None


def agent(case: Json) -> Json:
    """Pi's agent loop over a session of Clew's: prompts, replies, compactions at the end of a run and after overflow.

    The usage of each reply is the recorded one: it counts a system prompt that the case does not hold.
    """
    return Agent(case, "0.73.1").played()


class Agent:
    def __init__(self, case: Json, version: Version) -> None:
        config = case["config"]
        self.settings = config["compaction"]
        self.window = config["contextWindow"]
        self.hook = config["hook"]
        self.version = version
        self.steps = case["input"]["steps"]
        self.usage = (e["usage_total"] for e in case["output"]["entries"] if "usage_total" in e)
        self.aliases = Aliases()
        self.events: list[Json] = []
        self.hooked: list[Json] = []
        self.live: list[PiEntry] = []
        self.attempted = False
        policy = pi.Pi(reserve=self.settings["reserveTokens"], keep=self.settings["keepRecentTokens"], version=version)
        self.session = Session.open(
            "memory://",
            policy=Vetoed(policy) if self.hook == "cancel" else policy,
            model=Numbered(),
            window=self.window,
            counter=PiCounter(version),
        )
        self.add(Note("model_change", {}))
        self.add(Note("thinking_level_change", {}))

    def played(self) -> Json:
        steps = [self.step(step) for step in self.steps]
        entries = [shown(line) for line in self.lines()]
        self.session.close()
        return {"steps": steps, "events": self.events, "entries": entries, "hook_calls": self.hooked}

    def step(self, step: Json) -> Json:
        error = self.manual() if step.get("compact") else self.prompt(step["prompt"], list(step["replies"]))
        return {
            "step": step,
            "error": error,
            "editorText": None,
            "leaf": self.aliases.names[self.session.leaf or 0],
            "agent_roles": [e.role for e in self.live],
        }

    def add(self, body: Any) -> None:
        self.session.append_many([Draft(body)])

    def say(self, raw: Json) -> PiEntry:
        self.add(said(raw))
        self.live.append(self.entries()[-1])
        return self.live[-1]

    # -- the loop

    def prompt(self, text: str, replies: list[Json]) -> None:
        last = next((e for e in reversed(self.live) if e.role == "assistant"), None)
        if last is not None:
            self.check(last)
        self.attempted = False
        self.say({"role": "user", "content": [{"type": "text", "text": text}]})
        while replies:
            reply = self.say(self.reply(replies.pop(0)))
            self.attempted = self.attempted and _failed(reply)
            if not self.check(reply):
                return

    def reply(self, reply: Json) -> Json:
        raw: Json = {"role": "assistant", "usage": {"totalTokens": next(self.usage)}}
        if "error" in reply:
            return {**raw, "content": [], "stopReason": "error", "errorMessage": reply["error"]}
        return {**raw, "content": [{"type": "text", "text": reply["text"]}], "stopReason": "stop"}

    def check(self, reply: PiEntry) -> bool:
        """Compacts when it is time to; whether the run goes on."""
        if not self.settings["enabled"] or not self.recent(reply):
            return False
        if is_overflow(ModelError(reply.source["message"].get("errorMessage", ""))):
            if self.attempted:
                self.ended("overflow", error="the one attempt did not help")
                return False
            self.attempted = True
            self.live.pop()
            return self.automatic("overflow", retry=True)
        fill = pi_entries.fill([reply], self.version)
        if _failed(reply):
            fill = pi_entries.fill(self.live, self.version)
            if fill.at is None or not self.recent(self.live[fill.at]):
                return False
        view = View((), PiCounter(self.version), fill.tokens)
        if triggers.above(view, triggers.reserve(self.window, self.settings["reserveTokens"])):
            self.automatic("threshold")
        return False

    def recent(self, entry: PiEntry) -> bool:
        """Whether an entry came after the newest compaction."""
        entries = self.entries()
        newest = pi_entries.newest_compaction(entries)
        return newest is None or any(e.id == entry.id for e in entries[newest + 1 :])

    def automatic(self, reason: Reason, retry: bool = False) -> bool:
        self.events.append({"event": "compaction_start", "reason": reason})
        prepared = self.prepare()
        done = self.session.compact(reason=reason) if prepared else None
        if done is None:
            self.ended(reason, aborted=prepared is not None)
            return False
        self.rebuild(drop_failed=retry)
        self.ended(reason, retry=retry, result=True)
        return retry

    def manual(self) -> str | None:
        self.events.append({"event": "compaction_start", "reason": "manual"})
        if self.prepare() is None:
            done = any(e.kind == "compaction" for e in self.entries()[-1:])
            error = "Already compacted" if done else "Nothing to compact (session too small)"
            self.ended("manual", error=error)
            return error
        if self.session.compact(reason="manual") is None:
            self.ended("manual", aborted=True)
            return "Compaction cancelled"
        self.rebuild()
        self.ended("manual", result=True)
        return None

    def prepare(self) -> pi_cut.Preparation | None:
        prepared = pi_cut.prepare(self.entries(), self.settings["keepRecentTokens"], self.version)
        if prepared and self.hook:
            self.hooked.append(
                {
                    "isSplitTurn": prepared.splits,
                    "summarize": len(prepared.history),
                    "prefix": len(prepared.prefix),
                    "tokensBefore": prepared.tokens,
                    "previousSummary": prepared.previous,
                }
            )
        return prepared

    def rebuild(self, drop_failed: bool = False) -> None:
        """The live messages made anew from the log; a retry leaves the failed reply at the end out."""
        self.live = pi_entries.context(self.entries(), self.version)
        if drop_failed and _failed(self.live[-1]):
            self.live.pop()

    def ended(
        self,
        reason: Reason,
        *,
        aborted: bool = False,
        retry: bool = False,
        result: bool = False,
        error: str | None = None,
    ) -> None:
        self.events.append(
            {
                "event": "compaction_end",
                "reason": reason,
                "aborted": aborted,
                "willRetry": retry,
                "hasResult": result,
                "error": error is not None,
            }
        )

    # -- Pi's form of the log

    def entries(self) -> list[PiEntry]:
        return pi_log.read(self.lines(), self.version)

    def lines(self) -> Iterator[Json]:
        before: list[Entry] = []
        for entry in self.session.branch():
            self.aliases.add(entry.id)
            if isinstance(entry.body, Compaction):
                yield self.compaction(entry, before)
            else:
                yield self.aliases.line(entry, self.version)
            before.append(entry)

    def compaction(self, entry: Entry, before: Sequence[Entry]) -> Json:
        """A compaction, with the first message before it that the view still shows."""
        body = entry.body
        assert isinstance(body, Compaction)
        (edit,) = body.edits
        assert isinstance(edit, Replace | Insert)
        view = project([*before, entry], PiCounter(self.version)).view
        kept = next((i.ids[0] for i in view.items if i.kind == "message"), entry.id)
        return {
            "type": "compaction",
            "id": self.aliases.names[entry.id],
            "parentId": self.aliases.names[entry.parent or 0],
            "summary": edit.message.meta["clew"]["summary"],
            "firstKeptEntryId": self.aliases.names[kept],
            "fromHook": False,
            "details": dict(body.details),
        }


def shown(line: Json) -> Json:
    """An entry as the case shows it."""
    rest = {k: v for k, v in line.items() if k not in ("timestamp", "message")}
    message = line.get("message")
    if message is None:
        return rest
    rest |= {"role": message["role"], "text": "".join(b["text"] for b in message["content"])[:40]}
    rest |= {k: message[k] for k in ("errorMessage", "stopReason") if k in message}
    return rest | ({"usage_total": message["usage"]["totalTokens"]} if "usage" in message else {})


def _failed(reply: PiEntry) -> bool:
    return bool(reply.source["message"].get("stopReason") == "error")
