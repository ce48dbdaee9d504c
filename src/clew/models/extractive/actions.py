"""What a tool call does and how its result ended, read off their arguments and texts.

Agents name their tools and arguments in many ways; the argument names tell more than the tool's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from clew.messages import ToolCall, ToolResult
from clew.models.extractive import shell

PATH_KEYS = (
    "path", "file_path", "filePath", "absolute_path", "filename", "file", "target_file", "notebook_path",
    "relative_path", "paths", "files", "source", "destination",
)  # fmt: skip
COMMAND_KEYS = ("command", "cmd", "script", "input", "code")
WRITE_KEYS = frozenset(
    {
        "content", "contents", "file_text", "new_str", "old_str", "new_string", "old_string", "newText", "oldText",
        "edits", "insert_line", "patch", "diff", "new_source", "search", "replace", "destination",
    }
)  # fmt: skip
EDITOR_COMMANDS = frozenset({"view", "create", "str_replace", "insert", "undo_edit"})
"""Values of `command` in Anthropic's text editor tool, where it is no shell command."""

_WRITES = re.compile(r"write|edit|create|replace|patch|update|insert|delete|remove|move|rename", re.IGNORECASE)
_SHELL = re.compile(r"bash|shell|terminal|exec|run|command|python|ipython|code", re.IGNORECASE)
_PLAN = re.compile(r"todo|plan", re.IGNORECASE)
_PATCH_FILE = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File|\*\*\* Move to): (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE
)
MAX_LABEL = 160
"""Characters of a command or call as named in a summary."""


class Action(Struct, frozen=True):
    """What a call does.

    `label` names it, `command` is what it runs in a shell, `changed` and `read` are files, `plan` is
    the list of tasks it sets, `commits` are titles of commits it makes. `notable` says that it is worth
    a line even when nothing went wrong.
    """

    label: str
    command: str = ""
    changed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    notable: bool = False


def action(call: ToolCall) -> Action:
    """What a tool call does."""
    arguments = _arguments(call)
    if _PLAN.search(call.name) and (plan := _plan(arguments)):
        return Action(call.name, plan=plan)
    patch = next((v for v in arguments.values() if isinstance(v, str) and "*** Begin Patch" in v), "")
    if patch:
        files = tuple(a or b for a, b in _PATCH_FILE.findall(patch))
        return Action(f"{call.name} {' '.join(files)}"[:MAX_LABEL], changed=files)
    files = _files(arguments)
    command = _command(call, arguments)
    if files and (not command or command in EDITOR_COMMANDS):
        changes = command != "view" and bool(_WRITES.search(call.name) or WRITE_KEYS & arguments.keys())
        target = f"{call.name} {' '.join(files)}"[:MAX_LABEL]
        return Action(target, changed=files) if changes else Action(target, read=tuple(filter(shell.is_file, files)))
    if command:
        return command_action(command)
    text = " ".join(call.arguments.split())
    return Action(named(call.name if text in ("", "{}") else f"{call.name} {text}"), notable=True)


def command_action(command: str) -> Action:
    """What a shell command does."""
    changed, read = shell.paths(command)
    return Action(
        named(command),
        shell.core(command),
        tuple(changed),
        tuple(read),
        commits=shell.commits(command),
        notable=not shell.looks_only(command),
    )


def named(command: str) -> str:
    """How a command is named in a summary: its first line without wrapping, shortened; of a longer one
    also the first check it runs, by which its failure can be found solved later."""
    text = shell.core(command).strip()
    first = text.split("\n", 1)[0].strip()
    short = first[:MAX_LABEL].rstrip()
    if short == text:
        return short
    check = next((part for part in shell.checks(text) if part not in short), "")
    return f"{short} … && {check}"[: 2 * MAX_LABEL] if check else f"{short} …"


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    try:
        value = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = call.arguments  # custom tools take plain text
    return value if isinstance(value, dict) else {"input": value}


def _files(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for key in PATH_KEYS:
        value = arguments.get(key)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and 0 < len(path) < 300 and "\n" not in path and "://" not in path:
                found.append(path)
    return tuple(dict.fromkeys(found))


def _command(call: ToolCall, arguments: Mapping[str, Any]) -> str:
    for key in COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return value[-1] if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
        if isinstance(value, str) and value and (key in ("command", "cmd") or _SHELL.search(call.name)):
            return value
    return ""


_MARKS = {"completed": "[x]", "done": "[x]", "in_progress": "[~]", "cancelled": "[-]"}


def _plan(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    steps = next((v for v in arguments.values() if isinstance(v, list)), [])
    lines = []
    for step in steps:
        if isinstance(step, dict):
            text = next((step[k] for k in ("content", "step", "title", "text", "description", "task") if k in step), "")
            if isinstance(text, str) and text.strip():
                lines.append(f"{_MARKS.get(str(step.get('status')), '[ ]')} {' '.join(text.split())}")
        elif isinstance(step, str) and step.strip():
            lines.append(f"[ ] {' '.join(step.split())}")
    return tuple(lines)


class Outcome(Struct, frozen=True):
    """How a call ended: `status` is "exit N", "error" or "" (not known); `errors` the lines that say what failed."""

    status: str
    failed: bool
    errors: tuple[str, ...] = ()
    last: str = ""


_EXIT = re.compile(
    r"(?:exit(?:ed)?[ _](?:with[ _])?(?:code|status)|return[ _]?code|exit_code|exit)[\"'>:= ]{0,4}(-?\d{1,3})\b",
    re.IGNORECASE,
)
_CRASHED = re.compile(
    r"^Traceback \(most recent call last\)|^(?:FAILED|ERROR) \S|^=+ .*\bfailed\b|^npm ERR!|^error(?:\[\w+\])?: "
    r"|^fatal: |error TS\d+|^panic: |: command not found$|^\S+: cannot |^make: \*\*\* ",
    re.MULTILINE,
)
_ERROR_LINE = re.compile(
    r"^E  .*\S|^\w*(?:\.\w+)*(?:Error|Exception|Warning|Failure)\b(?::|$)|^(?:FAILED|ERROR)[ :]."
    r"|^(?:error|fatal|panic)\b|^\S+:\d+(?::\d+)?:.*\berror\b|\berror TS\d+|\bcommand not found|No such file or"
    r"|Permission denied|\bnot found\b|\bnpm ERR!|\bundefined reference|\bAssertionError\b"
    r"|错误|失败|エラー|失敗|오류|실패"
)
_COUNTS = re.compile(
    r"^.*\b\d+ (?:passed|failed|errors?|warnings?|tests?|problems?)\b.*$", re.MULTILINE | re.IGNORECASE
)
EDGE = 400
"""Characters at either end of a result in which an exit status is looked for."""
MAX_LINE = 1_000
"""Characters of a line that are looked at."""
WINDOW = 20_000
"""Characters at either end of a failed result in which error lines are looked for."""


def outcome(text: str, *, is_error: bool, ran: bool) -> Outcome:
    """How a result ended. `ran` says that it is a command's output, where a crash shows in the text."""
    edges = text if len(text) <= 2 * EDGE else text[:EDGE] + "\n" + text[-EDGE:]
    found = _EXIT.search(edges) if ran or is_error else None
    if found:
        status, failed = f"exit {found.group(1)}", int(found.group(1)) != 0
    elif is_error:
        status, failed = "error", True
    else:
        failed = ran and _CRASHED.search(_ends(text)) is not None
        status = "error" if failed else ""
    counts = _COUNTS.findall(text[-2_000:]) if ran else []
    return Outcome(status, failed, _errors(text) if failed else (), _tidy(counts[-1]) if counts else "")


def outcome_of(result: ToolResult, did: Action) -> Outcome:
    """How a tool result ended."""
    return outcome(result.text, is_error=result.is_error, ran=bool(did.command))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * WINDOW else text[:WINDOW] + "\n" + text[-WINDOW:]


def _errors(text: str) -> tuple[str, ...]:
    """Up to three lines that say what failed: the first one, and the last two (where Python and test
    runners put the cause)."""
    found = (line for line in _ends(text).split("\n") if _ERROR_LINE.search(line[:MAX_LINE]))
    lines = list(dict.fromkeys(filter(None, map(_tidy, found))))
    if not lines:
        lines = [t for t in (_tidy(line) for line in text[:2_000].split("\n")) if t][:1]
    return tuple(lines if len(lines) <= 3 else [lines[0], *lines[-2:]])


def _tidy(line: str) -> str:
    text = " ".join(line[:MAX_LINE].split()).strip("= ")
    return text if len(text) <= MAX_LABEL else text[:MAX_LABEL].rstrip() + " …"
