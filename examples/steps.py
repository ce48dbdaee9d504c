"""Reads the script of the example session: plain text with directives.

A line that begins with `@@ ` opens a block, the lines up to the next one are its text:

    @@ user [+MINUTES]      what the user says, so many minutes after the agent fell silent
    @@ picture PATH         a picture the user attaches, from the repository
    @@ think                thinking of the agent; begins a model reply
    @@ say                  text of the agent; begins a reply unless thinking just did
    @@ next                 begins a reply without text, unless thinking just did
    @@ bash                 tool calls of the reply: bash, read PATH [OFFSET LIMIT], write PATH,
    @@ ...                  edit PATH, grep PATTERN [in PATH], glob PATTERN, todo
    @@ hidden               a command that is run but not recorded (what the user does meanwhile)
    @@ file PATH            a file that is written but not recorded

Text before the first directive is a comment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOOLS = {"bash", "read", "write", "edit", "grep", "glob", "todo"}


@dataclass
class Hidden:
    """A command outside the conversation."""

    command: str


@dataclass
class Placed:
    """A file outside the conversation."""

    path: str
    content: str


@dataclass
class Asked:
    """A user turn."""

    text: str
    pause: float = 4.0
    pictures: list[str] = field(default_factory=list)


@dataclass
class Answered:
    """One model reply: thinking, text, tool calls as (name, input)."""

    thinking: str = ""
    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


Step = Hidden | Placed | Asked | Answered


def load(folder: Path) -> list[Step]:
    """The steps of all files of a folder, in the order of their names."""
    steps: list[Step] = []
    for path in sorted(folder.glob("*.txt")):
        for head, text in blocks(path.read_text(encoding="utf-8")):
            take(steps, head, text)
    return steps


def blocks(text: str) -> list[tuple[str, str]]:
    """The directives of a file with their texts, blank lines around a text taken off."""
    found: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if line.startswith("@@ "):
            found.append((line[3:].strip(), []))
        elif found:
            found[-1][1].append(line)
    return [(head, "\n".join(lines).strip("\n")) for head, lines in found]


def take(steps: list[Step], head: str, text: str) -> None:
    """Adds what one directive says to the steps."""
    word, _, rest = head.partition(" ")
    if word == "hidden":
        steps.append(Hidden(text))
    elif word == "file":
        steps.append(Placed(rest, text + "\n"))
    elif word == "user":
        steps.append(Asked(text, float(rest.strip("+") or 4)))
    elif word == "picture":
        asked = steps[-1]
        assert isinstance(asked, Asked), head
        asked.pictures.append(rest)
    elif word == "think":
        steps.append(Answered(thinking=text))
    elif word in ("next", "say"):
        last = steps[-1]
        if isinstance(last, Answered) and last.thinking and not last.text and not last.calls:
            last.text = text
        else:
            steps.append(Answered(text=text))
    elif word in TOOLS:
        if not isinstance(steps[-1] if steps else None, Answered):
            steps.append(Answered())
        last = steps[-1]
        assert isinstance(last, Answered)
        last.calls.append((word, arguments(word, rest, text)))
    else:
        raise ValueError(f"unknown directive: @@ {head}")


def arguments(tool: str, rest: str, text: str) -> dict[str, Any]:
    """The input of a tool call."""
    if tool == "bash":
        return {"command": text}
    if tool == "write":
        return {"path": rest, "content": text + "\n"}
    if tool == "edit":
        before, _, after = text.removeprefix("<<<<\n").removesuffix("\n>>>>").partition("\n====")
        return {"path": rest, "old_text": before, "new_text": after.removeprefix("\n")}
    if tool == "read":
        path, *span = rest.split()
        return {"path": path, **dict(zip(("offset", "limit"), map(int, span), strict=False))}
    if tool == "grep":
        pattern, _, where = rest.partition(" in ")
        return {"pattern": pattern, **({"path": where} if where else {})}
    if tool == "glob":
        return {"pattern": rest}
    marks = {"[x]": "completed", "[~]": "in_progress", "[ ]": "pending"}
    return {"todos": [{"content": line[4:], "status": marks[line[:3]]} for line in text.split("\n")]}
