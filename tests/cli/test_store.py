"""`clew store`: everything goes to another place, is compared, and can be looked at."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.messages import assistant, user
from clew.sessions import Session

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def filled(clew: Run, tmp_path: Path) -> str:
    """A store with two sessions, one of which continues the other, and two memories."""
    store = str(tmp_path / "store" / "clew.db")
    clew("memory", "add", "prefers 绿茶", "--key", "drink")
    clew("memory", "add", "for u1", "--user", "u1")
    with Session.open(store, title="first") as session:
        session.append_many([user("hello"), assistant("你好")])
        with session.fork() as fork:
            fork.append(user("on its own"))
    return store


def test_copy_and_look(clew: Run, filled: str, tmp_path: Path) -> None:
    shown = clew("store", "copy", filled, "other.db").stdout
    rows = [line.split() for line in shown.splitlines()[1:]]
    assert rows == [
        ["sessions", "2", "3", "entries", "3", "·"],
        ["memories", "2", "2", "changes", "2", "·"],
        ["models", "0", "0", "vectors", "0", "·"],
    ]
    again = json.loads(clew("store", "copy", filled, "other.db", "--json").stdout)
    assert [part["new"] for part in again["parts"]] == [0, 0, 0, 0]
    assert again["faults"] == []
    here, there = (json.loads(clew("store", "info", place, "--json").stdout) for place in (filled, "other.db"))
    assert here["namespaces"] == there["namespaces"]
    assert {row["namespace"]: row["changes"] for row in there["namespaces"]} == {"default": 1, "default/u1": 1}
    assert clew("sessions", "--db", "other.db").stdout == clew("sessions").stdout
    assert clew("memory", "export", "--db", "other.db").stdout == clew("memory", "export").stdout
    assert "default/u1" in clew("store", "info").stdout


def test_one_namespace_as_a_json_file(clew: Run, filled: str, tmp_path: Path) -> None:
    clew("store", "copy", filled, "json:memory.json", "--namespace", "default/u1")
    assert "for u1" in (tmp_path / "memory.json").read_text("utf-8")
    shown = clew("memory", "list", "--db", "json:memory.json", "--user", "u1").stdout
    assert "for u1" in shown


def test_what_is_not_equal_is_said(clew: Run, filled: str, tmp_path: Path) -> None:
    clew("store", "copy", filled, "other.db")
    with sqlite3.connect(tmp_path / "other.db") as raw:
        raw.execute("UPDATE entries SET body = replace(body, 'hello', 'HELLO')")
    raw.close()
    done = clew("store", "copy", filled, "other.db", code=2)
    assert "parts of other.db are not equal" in done.stderr
    assert "the source has 2 entries and the target others" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("copy", "nowhere.db", "other.db"), "no store at nowhere.db"),
        (("copy", "a.db"), "target"),
        (("info", "nowhere.db"), "no store at nowhere.db"),
        (("nonesuch",), "nonesuch"),
    ],
)
def test_refusals_are_one_line(clew: Run, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (line,) = clew("store", *arguments, code=2).stderr.splitlines()
    assert words in line
    assert list(tmp_path.iterdir()) == []
