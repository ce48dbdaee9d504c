"""What a shell command does to files, and which commands are runs of the same check."""

from __future__ import annotations

import re
from functools import lru_cache

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
LOOKS = READERS | frozenset(
    {"ls", "cd", "pwd", "echo", "printf", "grep", "rg", "find", "fd", "tree", "which", "stat", "du", "true"}
)
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
            read += filter(is_file, files)
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


def is_file(path: str) -> bool:
    """Whether a path looks like a file's, not a folder's: its name has an ending, or is one of a few."""
    name = path.rsplit("/", 1)[-1]
    return "." in name[1:] or name in ("Makefile", "Dockerfile", "LICENSE", ".gitignore", ".env")


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


def commits(command: str) -> tuple[str, ...]:
    """The titles of the git commits a command makes."""
    return tuple(a or b for a, b in _COMMIT.findall(command[:MAX_COMMAND]))


_COMMIT = re.compile(r"\bgit commit\b[^\n;&|]*?-[a-z]*m\s*(?:\"([^\"\n]+)|'([^'\n]+))")
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


def checks(command: str) -> list[str]:
    """The parts of a command that run a check."""
    return [core(part) for part in _parts(command) if _check(part)[0]]


def covers(later: str, earlier: str) -> bool:
    """Whether a success of `later` shows that what `earlier` complained about is gone.

    True for the same command, and for one that runs every check of the earlier one with no other
    targets than it had: `pytest -q` covers `pytest tests/test_a.py -x`, not the other way round.
    """
    return later == earlier or _covers(_checked(later), _checked(earlier))


Checked = tuple[tuple[str, frozenset[str]], ...]


@lru_cache(maxsize=4_096)
def _checked(command: str) -> Checked:
    return tuple(check for part in _parts(command) if (check := _check(part))[0])


def _covers(later: Checked, earlier: Checked) -> bool:
    return bool(earlier) and all(
        any(program == before and targets <= had for program, targets in later) for before, had in earlier
    )


def _check(part: str) -> tuple[str, frozenset[str]]:
    """The check a simple command runs, and its targets."""
    words = [w for w in _RUNNER.sub("", core(part)).split() if not w.startswith("-") and w not in ("2>&1", "run")]
    name = words[0].rsplit("/", 1)[-1] if words else ""
    if name not in CHECKS:
        return "", frozenset()
    if name in SUBCOMMANDS and words[1:]:
        return f"{name} {words[1]}", frozenset(words[2:])
    return name, frozenset(words[1:])
