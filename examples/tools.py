"""The tools of the recorded agent. They really run, in a folder of their own with a fixed environment."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOME = "/home/dev/tally"
"""The repository as the session sees it, wherever it lies."""
LIMIT = 30_000
"""Characters of output a tool hands back."""

SCHEMAS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {key: {"type": kind, "description": meaning} for key, kind, meaning, _ in fields},
            "required": [key for key, _, _, needed in fields if needed],
        },
    }
    for name, description, fields in [
        (
            "bash",
            "Runs a command in the repository's root and returns its output, with the exit code if it is not 0.",
            [("command", "string", "The command, for bash.", True)],
        ),
        (
            "read",
            "Returns a text file with line numbers, or a picture.",
            [
                ("path", "string", "The file.", True),
                ("offset", "integer", "First line, from 1.", False),
                ("limit", "integer", "How many lines at most.", False),
            ],
        ),
        (
            "write",
            "Creates or overwrites a file.",
            [("path", "string", "The file.", True), ("content", "string", "Its whole text.", True)],
        ),
        (
            "edit",
            "Replaces a piece of text that occurs exactly once in a file.",
            [
                ("path", "string", "The file.", True),
                ("old_text", "string", "The text as it is, with its indentation.", True),
                ("new_text", "string", "The text that takes its place.", True),
            ],
        ),
        (
            "grep",
            "Searches the repository's files for a regular expression.",
            [
                ("pattern", "string", "Python regular expression.", True),
                ("path", "string", "File or folder to search (default: all).", False),
            ],
        ),
        ("glob", "Lists files whose path matches a pattern.", [("pattern", "string", "Such as src/**/*.py.", True)]),
        ("todo", "Replaces the list of tasks.", [("todos", "array", "Objects with content and status.", True)]),
    ]
]


@dataclass
class Result:
    """What a tool hands back: text or a PNG picture, and whether it failed."""

    text: str
    is_error: bool = False
    picture: bytes = b""


class ToolFailed(Exception):
    """A tool could not do what was asked; the text is what the agent sees."""


class Workspace:
    """A folder the tools work in. `clock`, seconds since 1970, is the time that git sees."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve() / "tally"
        self.clock = 0
        binaries = folder.resolve() / "bin"
        for path in (self.root, binaries):
            path.mkdir(parents=True)
        (binaries / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (binaries / "python").chmod(0o755)
        self.path = f"{binaries}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        self.hidden("git init -q -b main")

    def call(self, name: str, given: dict[str, Any]) -> Result:
        """Runs one tool."""
        try:
            return getattr(self, f"_{name}")(**given)
        except ToolFailed as failure:
            return Result(str(failure), is_error=True)

    def hidden(self, command: str) -> None:
        """Runs a command nobody sees; it has to succeed."""
        code, text = self._run(command)
        if code:
            raise RuntimeError(f"{command}: {text}")

    def _run(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command.replace(HOME, str(self.root))],
            cwd=self.root,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        return done.returncode, self._neutral(done.stdout.decode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        stamp = f"{self.clock} +0000"
        return {
            "PATH": self.path,
            "HOME": str(self.root.parent),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "PYTHONPATH": "src",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNODEBUGRANGES": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider --color=no",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PAGER": "cat",
            "GIT_AUTHOR_NAME": "dev",
            "GIT_AUTHOR_EMAIL": "dev@example.com",
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_NAME": "dev",
            "GIT_COMMITTER_EMAIL": "dev@example.com",
            "GIT_COMMITTER_DATE": stamp,
        }

    def _neutral(self, text: str) -> str:
        """Output without what differs from machine to machine: places, times, versions."""
        places = sysconfig.get_paths()
        for place in (places["purelib"], places["stdlib"], sys.prefix, sys.base_prefix):
            text = text.replace(place, "/usr/lib/python3")
        text = text.replace(str(self.root), HOME).replace(str(self.root.parent), "/home/dev")
        text = re.sub(r"\bin \d+\.\d+s\b", "in 0.21s", text)
        text = re.sub(r"\b\d+\.\d+s (call|setup|teardown)\b", r"0.01s \1", text)
        text = re.sub(r"/tmp/pytest-of-\w+/pytest-\d+", "/tmp/pytest-of-dev/pytest-0", text)
        text = re.sub(
            r"^(platform linux -- Python|python) .*$", r"\1 3.12.4, pytest-8.3.4, pluggy-1.5.0", text, flags=re.M
        )
        return re.sub(r" at 0x[0-9a-f]{6,}", " at 0x7f3a5c0d1e80", text)

    def _inside(self, path: str) -> Path:
        return self.root / path.removeprefix(HOME).lstrip("/")

    def _bash(self, command: str) -> Result:
        code, text = self._run(command)
        text = text.rstrip("\n")
        if len(text) > LIMIT:
            half = LIMIT // 2
            text = f"{text[:half]}\n[... {len(text) - LIMIT} characters left out ...]\n{text[-half:]}"
        if code:
            return Result(f"{text}\n\nProcess exited with code {code}".lstrip("\n"), is_error=True)
        return Result(text or "(no output)")

    def _read(self, path: str, offset: int = 1, limit: int = 2000) -> Result:
        file = self._inside(path)
        if not file.is_file():
            raise ToolFailed(f"File does not exist: {path}")
        if file.suffix == ".png":
            return Result(f"{path} ({file.stat().st_size} bytes)", picture=file.read_bytes())
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        shown = lines[offset - 1 : offset - 1 + limit]
        text = "\n".join(f"{number:5}\t{line}" for number, line in enumerate(shown, offset))
        more = len(lines) - (offset - 1 + len(shown))
        return Result(text + (f"\n[{more} more lines]" if more > 0 else "") or "(empty file)")

    def _write(self, path: str, content: str) -> Result:
        file = self._inside(path)
        new = not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return Result(f"{'Created' if new else 'Wrote'} {path} ({len(content.splitlines())} lines)")

    def _edit(self, path: str, old_text: str, new_text: str) -> Result:
        file = self._inside(path)
        if not file.is_file():
            raise ToolFailed(f"File does not exist: {path}")
        text = file.read_text(encoding="utf-8")
        found = text.count(old_text)
        if found != 1:
            hint = "check the indentation and read the file again" if not found else "give more lines around it"
            raise ToolFailed(f"old_text occurs {found} times in {path}, it has to occur once: {hint}")
        at = text.index(old_text)
        file.write_text(text.replace(old_text, new_text), encoding="utf-8")
        first = text.count("\n", 0, at) + 1
        return Result(f"Edited {path}: lines {first}-{first + old_text.count(chr(10))} replaced")

    def _files(self) -> list[Path]:
        return sorted(
            p
            for p in self.root.rglob("*")
            if p.is_file() and not {".git", "__pycache__"} & {*p.relative_to(self.root).parts}
        )

    def _grep(self, pattern: str, path: str = "") -> Result:
        under = self._inside(path)
        hits = []
        for file in self._files():
            if file != under and under not in file.parents:
                continue
            text = file.read_bytes()
            if b"\x00" in text[:1000]:
                continue
            for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
                if re.search(pattern, line):
                    hits.append(f"{file.relative_to(self.root)}:{number}:{line[:300]}")
        return Result("\n".join(hits[:200]) or "No matches")

    def _glob(self, pattern: str) -> Result:
        found = sorted(str(p.relative_to(self.root)) for p in self.root.glob(pattern) if p.is_file())
        return Result("\n".join(f for f in found if "__pycache__" not in f and not f.startswith(".git/")) or "No files")

    def _todo(self, todos: list[dict[str, str]]) -> Result:
        left = sum(t["status"] != "completed" for t in todos)
        return Result(f"Task list updated: {left} of {len(todos)} open")


def picture_block(data: bytes) -> dict[str, Any]:
    """A PNG as an image block."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode("ascii")}
    return {"type": "image", "source": source}
