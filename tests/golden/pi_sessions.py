"""Pi's session manager, driven on Clew's sessions.

The log is Clew's; what Pi keeps beside it is drawn from it: ids as the case names them, entries in
Pi's form (a message's own form is kept in its `meta`), and when Pi would have written its file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from clew.errors import UnknownName
from clew.messages import Message, Text, assistant
from clew.models import ModelCall, Reply
from clew.policies.harness import pi, pi_log, pi_summary
from clew.policies.harness.pi_entries import Version
from clew.sessions.entries import BranchSummary, Draft, Entry, Label, Note, Said
from clew.sessions.session import Session

Json = dict[str, Any]


class PiCounter(Struct, frozen=True):
    """Pi's estimate of messages that carry Pi's own form."""

    version: Version
    name: str = "pi"

    def text(self, text: str) -> int:
        return pi_log.estimate({"role": "user", "content": text}, self.version)

    def message(self, message: Message) -> int:
        return pi_log.estimate(message.meta.get("pi", {"role": "user", "content": message.text}), self.version)

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        return self.text(str(tools))


class Numbered:
    """A model that answers SUMMARY-1, SUMMARY-2, …"""

    name = "numbered"
    context_window = 200_000

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []

    def complete(self, call: ModelCall) -> Reply:
        self.calls.append(call)
        return Reply(assistant(f"SUMMARY-{len(self.calls)}"))

    async def acomplete(self, call: ModelCall) -> Reply:
        return self.complete(call)


def said(raw: Json) -> Said | Note:
    """The body of a message entry."""
    message = pi_log.for_model(raw)
    return Note("message", raw) if message is None else Said(Message(message.role, message.parts, meta={"pi": raw}))


class Aliases:
    """The case's names for entries; entries it does not name are e1, e2, … in order."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.names: dict[int, str] = {}

    def add(self, entry: int, name: str = "") -> str:
        name = name or f"e{entry}"
        self.ids[name], self.names[entry] = entry, name
        return name

    def line(self, entry: Entry, version: Version) -> Json:
        """The entry in Pi's form."""
        parent = None if entry.parent is None else self.names[entry.parent]
        head = {"id": self.names[entry.id], "parentId": parent, "timestamp": "{TS}"}
        body = entry.body
        match body:
            case Said():
                return {"type": "message", **head, "message": body.message.meta["pi"]}
            case Label():
                return {"type": "label", **head, "targetId": self.names[body.target], "label": body.text}
            case BranchSummary():
                left = parent if version == "0.73.1" else self.names.get(body.leaf)
                kept = {"details": dict(body.details)} if body.details else {}
                summary = body.message.meta["clew"]["summary"]
                return {"type": "branch_summary", **head, "fromId": left or "root", "summary": summary, **kept}
            case Note():
                return {"type": body.kind, **head, **body.data}
        raise AssertionError(body)


def managed(args: Json, version: Version) -> Json:
    """Runs the operations on a session of Clew's in a file; `open` opens the file again."""
    with tempfile.TemporaryDirectory() as folder:
        manager = Manager(Path(folder) / "pi.db", version)
        log = [manager.take(op) for op in args["ops"]]
        return {"log": log, **manager.end(args["cwd"])}


class Manager:
    def __init__(self, file: Path, version: Version) -> None:
        self.file = file
        self.version = version
        self.aliases = Aliases()
        self.session = self.opened()

    def take(self, op: Json) -> Json:
        error = None
        try:
            if op.get("open"):
                self.session.close()
                self.session = self.opened(self.session.id)
            else:
                OPS[op["op"]](self, *(self.ref(a) for a in op.get("args", ())))
                if "as" in op and self.session.leaf is not None:
                    self.aliases.add(self.session.leaf, op["as"])
        except UnknownName:
            error = f"Entry {op['args'][0]} not found"
        leaf = None if self.session.leaf is None else self.aliases.names[self.session.leaf]
        return {"op": op.get("op", "open"), "error": error, "leaf": leaf, "file_lines": len(self.lines(""))}

    def opened(self, id: str | None = None) -> Session:
        return Session.open(self.file, id, model=Numbered(), counter=PiCounter(self.version))

    def ref(self, arg: Any) -> Any:
        return self.aliases.ids[arg[1:]] if isinstance(arg, str) and arg.startswith("@") else arg

    def add(self, body: Any) -> None:
        self.session.append_many([Draft(body)])

    def note(self, kind: str, **fields: Any) -> None:
        self.add(Note(kind, fields))

    def label(self, target: Any, text: str | None = None) -> None:
        self.known(target)
        self.add(Label(target, text or ""))

    def name(self, name: str) -> None:
        if self.version != "0.73.1":
            name = name.replace("\r\n", "\n").replace("\n", " ").replace("\r", " ")
        self.note("session_info", name=name.strip())

    def branch(self, target: Any) -> None:
        self.session.branch_to(self.known(target))

    def branch_with_summary(self, target: Any, summary: str, details: Json | None = None) -> None:
        left = self.session.leaf
        if target is not None:
            self.branch(target)
        noted = {"clew": {"branch": True, "summary": summary}}
        message = Message("user", (Text(pi_summary.branch_text(summary)),), meta=noted)
        self.session.append_many([Draft(BranchSummary(message, left or 0, details or {}), parent=target)])

    def known(self, target: Any) -> int:
        if target not in self.aliases.names:
            raise UnknownName(f"no entry {target}")
        return int(target)

    def lines(self, cwd: str) -> list[Json]:
        """Pi's file: none until a reply is in it (1.6: a message of the user or a reply), then all."""
        entries = [self.aliases.line(e, self.version) for e in self.session.entries()]
        begins = {"assistant"} if self.version == "0.73.1" else {"assistant", "user"}
        if not any(e["type"] == "message" and e["message"]["role"] in begins for e in entries):
            return []
        first = {"type": "session", "version": pi_log.VERSION, "id": "S1", "timestamp": "{TS}", "cwd": cwd}
        return [first, *entries]

    def end(self, cwd: str) -> Json:
        lines = self.lines(cwd)
        names = [e["name"] for e in lines if e["type"] == "session_info"]
        result = {
            "files": [{"name": "{TS}_S1.jsonl", "lines": lines}] if lines else [],
            "context_roles": [e.role for e in pi.entries(self.session.view)],
            "tree": self.tree(),
            "name": names[-1] if names and names[-1] else None,
        }
        self.session.close()
        return result

    def tree(self) -> list[Json]:
        nodes = self.session.tree()

        def below(id: int) -> Json:
            label = nodes[id].label or None
            return {"id": self.aliases.names[id], "label": label, "children": [below(c) for c in nodes[id].children]}

        return [below(id) for id, node in nodes.items() if node.parent is None]


OPS: dict[str, Callable[..., None]] = {
    "appendMessage": lambda m, raw: m.add(said(raw)),
    "appendModelChange": lambda m, provider, model: m.note("model_change", provider=provider, modelId=model),
    "appendThinkingLevelChange": lambda m, level: m.note("thinking_level_change", thinkingLevel=level),
    "appendCustomEntry": lambda m, kind, data=None: m.note("custom", customType=kind, data=data),
    "appendSessionInfo": Manager.name,
    "appendLabelChange": Manager.label,
    "branch": Manager.branch,
    "resetLeaf": lambda m: m.session.branch_to(None),
    "branchWithSummary": Manager.branch_with_summary,
}
