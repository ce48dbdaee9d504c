"""What a shell command does to files, and which commands are runs of the same check."""

from __future__ import annotations

import re

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:^\t*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"")
_PART = re.compile(r"\|\||&&|[;|\n]")
_REDIRECT = re.compile(r"(?:^|[\s\d])>>?\s*(?![&>])(\S+)")
_PATH = re.compile(
    r"^(?:[\w.~@+-]*/)*[\w.@+\-\[\]]*\.\w{1,12}$|^(?:[\w.~@+-]*/)+[\w.@+-]+$|^(?:Makefile|Dockerfile|LICENSE)$"
)
_ASSIGNMENT = re.compile(r"^(?:\w+=\S*\s+)+")
_WRAPPER = re.compile(r"^(?:cd\s+\S+\s*(?:&&|;)\s*|(?:sudo|env|time|exec|command|nohup)\s+|timeout\s+\S+\s+)")
_TAIL = re.compile(r"\s*(?:2>&1|2>\s*/dev/null|\|\s*(?:tail|head|cat|tee|less|sort|uniq|wc)\b[^|&;]*)\s*$")

READERS = frozenset({"cat", "head", "tail", "less", "more", "nl", "bat", "wc", "diff", "jq", "file", "xxd", "od"})
WRITERS = frozenset({"tee", "touch", "rm", "mv", "cp", "truncate", "patch", "install", "ln"})
LOOKS = READERS | {
    "ls",
    "cd",
    "pwd",
    "echo",
    "printf",
    "grep",
    "rg",
    "find",
    "fd",
    "tree",
    "which",
    "stat",
    "du",
    "true",
}
"""Commands that only look around; a run of them is worth no line in a summary."""
GIT_LOOKS = frozenset({"status", "diff", "log", "show", "branch", "blame", "remote", "rev-parse", "ls-files"})
MAX_COMMAND = 20_000
"""Characters of a command that are looked at; what follows is the body of a file being written."""


def paths(command: str) -> tuple[list[str], list[str]]:
    """The files a shell command changes and the files it reads, as far as its text tells."""
    changed: list[str] = []
    read: list[str] = []
    for part in _parts(command):
        changed += [p for p in _REDIRECT.findall(part) if _is_path(p)]
        words = _REDIRECT.sub(" ", part).split()
        if not words:
            continue
        name, rest = words[0].rsplit("/", 1)[-1], words[1:]
        if name == "git" and rest[:1] in (["mv"], ["rm"]):
            name, rest = rest[0], rest[1:]
        files = [w for w in rest if _is_path(w)]
        in_place = any(w.startswith("-i") or w == "--in-place" for w in rest)
        if name in WRITERS or (name in ("sed", "perl") and in_place):
            changed += files[-1:] if name in ("cp", "install", "ln") else files
        elif name in READERS or name in ("sed", "awk"):
            read += files
    return changed, read


def _parts(command: str) -> list[str]:
    text = _HEREDOC.sub(r"\3\n", command[:MAX_COMMAND])
    text = _QUOTED.sub(lambda m: _unquoted(m.group(1) if m.group(1) is not None else m.group(2)), text)
    parts = [_ASSIGNMENT.sub("", part.strip()) for part in _PART.split(text)]
    return [p for p in parts if p]


def _unquoted(text: str) -> str:
    """A quoted word as it is when it is a path, else something that is none."""
    return text if _is_path(text) else "''"


def _is_path(word: str) -> bool:
    return len(word) < 300 and not word.startswith(("-", "/dev/")) and _PATH.match(word) is not None


def core(command: str) -> str:
    """The command without what does not matter to what it is: a leading `cd`, assignments, a trailing pager."""
    text = command.strip()
    while (short := _ASSIGNMENT.sub("", _WRAPPER.sub("", text))) != text and short:
        text = short
    while (short := _TAIL.sub("", text)) != text and short:
        text = short
    return text


def looks_only(command: str) -> bool:
    """True when every part of the command only looks around."""
    for part in _parts(command):
        words = part.split()
        name = words[0].rsplit("/", 1)[-1]
        if name == "git" and words[1:] and words[1] in GIT_LOOKS:
            continue
        if name == "sed" and "-n" in words:
            continue
        if name not in LOOKS:
            return False
    return True


def covers(later: str, earlier: str) -> bool:
    """Whether a success of `later` shows that what `earlier` complained about is gone.

    True for the same command, and for a run of the same program with no other targets than the
    earlier one had: `pytest -q` covers `pytest tests/test_a.py -x`, not the other way round.
    """
    program, targets = _check(later)
    before, had = _check(earlier)
    return later == earlier or (program == before and program != "" and targets <= had)


_RUNNER = re.compile(r"^(?:python[\d.]*\s+-m|uv\s+run|poetry\s+run|npx|pnpm\s+exec|bundle\s+exec)\s+")
SUBCOMMANDS = frozenset(
    {"npm", "pnpm", "yarn", "bun", "cargo", "go", "make", "just", "dotnet", "mvn", "gradle", "ruff", "docker"}
)
CHECKS = SUBCOMMANDS | {
    "pytest",
    "tox",
    "nox",
    "mypy",
    "pyright",
    "flake8",
    "pylint",
    "eslint",
    "tsc",
    "jest",
    "vitest",
}
"""Programs whose runs check the whole project unless told a target."""


def _check(command: str) -> tuple[str, frozenset[str]]:
    words = _RUNNER.sub("", core(command)).split()
    words = [w for w in words if not w.startswith("-") and w not in ("2>&1", "run")]
    if not words or words[0].rsplit("/", 1)[-1] not in CHECKS:
        return "", frozenset()
    name = words[0].rsplit("/", 1)[-1]
    if name in SUBCOMMANDS and words[1:]:
        return f"{name} {words[1]}", frozenset(words[2:])
    return name, frozenset(words[1:])
