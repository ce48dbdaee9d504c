"""The command as a person uses it: what it prints, what it leaves behind, and how it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import clew as package
from clew.cli.replay import LONG
from clew.codecs import anthropic
from coding_session import coding_session

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    file = tmp_path / "session.json"
    file.write_text(json.dumps(anthropic.encode(coding_session()), ensure_ascii=False), encoding="utf-8")
    return file


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error."""
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("clew: ")
    return lines[0]


def test_replay_fits_eighty_columns(clew: Run, transcript: Path) -> None:
    shown = clew("replay", transcript.name, "--policy", "pi:keep=1_500", "--window", "6_000").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "policy pi:keep=1_500\nwindow 6,000, prompt up to 4,500 · summaries extractive" in shown
    for word in ("Compactions", "Totals", "prompt cache", "behind a summary", "▲ compaction"):
        assert word in shown


def test_replay_json_and_html(clew: Run, transcript: Path, tmp_path: Path) -> None:
    arguments = ("replay", transcript.name, "--window", "6000", "--html", "sub/page.html", "--json")
    result = json.loads(clew(*arguments).stdout)
    assert result["policy"] == "pi"
    assert result["sent"] == sum(m["sent"] for m in result["moments"])
    assert max(m["sent"] for m in result["moments"]) == result["peak"] <= 6_000
    assert len(result["compactions"]) > 1
    page = (tmp_path / "sub" / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "全部测试通过" in page


def test_a_long_file_shows_its_progress_on_a_terminal(tmp_path: Path) -> None:
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"message {n}"} for n in range(LONG)]
    (tmp_path / "long.json").write_text(json.dumps(talk), encoding="utf-8")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "clew", "replay", "long.json", "--window", "32000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, text=True) as running:
        os.close(theirs)
        terminal = b""
        with contextlib.suppress(OSError):  # how Linux says that nobody writes to the terminal any more
            while piece := os.read(ours, 65_536):
                terminal += piece
        os.close(ours)
        assert running.stdout is not None
        shown = running.stdout.read()
    assert running.returncode == 0
    assert b"replaying" in terminal
    assert f"/{LONG}".encode() in terminal
    assert f"model calls 1–{LONG // 2}" in shown


def test_replay_of_several_files(clew: Run, transcript: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps(anthropic.encode(coding_session(2))), encoding="utf-8")
    results = json.loads(clew("replay", transcript.name, other.name, "--window", "6000", "--json").stdout)
    assert [r["source"] for r in results] == ["session.json", "other.json"]


def test_the_view_at_a_call(clew: Run, transcript: Path) -> None:
    shown = clew("replay", transcript.name, "--window", "6000", "--at", "20").stdout
    assert "The view at model call 20" in shown
    assert "[summary of entry" in shown
    assert "there is no model call 2000" in clew("replay", transcript.name, "--at", "2000", code=2).stderr


def test_kept_replay_can_be_opened(clew: Run, transcript: Path) -> None:
    shown = clew("replay", transcript.name, "--window", "6000", "--keep").stdout
    session = shown.partition("kept as session ")[2].partition(":")[0]
    view = json.loads(clew("show", session, "--view", "--json").stdout)
    log = json.loads(clew("show", session[:6], "--log", "--json").stdout)
    compaction = next(e for e in log if e["body"]["type"] == "compaction")
    assert any(item["kind"] == "summary" for item in view)
    originals = json.loads(clew("expand", f"{session}:{compaction['id']}", "--json").stdout)
    said = [e for e in log if e["body"]["type"] == "message"]
    assert originals == said[1 : 1 + len(originals)]
    assert "Task 0" in clew("expand", f"{session}:{compaction['id']}").stdout


def test_import_twice_adds_once(clew: Run, transcript: Path) -> None:
    first = clew("import", transcript.name).stdout
    again = clew("import", transcript.name).stdout
    assert "0 entries added" in again
    assert first.partition("session ")[2][:12] == again.partition("session ")[2][:12]
    rows = json.loads(clew("sessions", "--json").stdout)
    assert len(rows) == 1
    assert rows[0]["title"] == "session.json"
    shown = clew("sessions").stdout
    assert rows[0]["id"] in shown
    assert max(map(len, shown.splitlines())) <= 80
    entries = json.loads(clew("show", rows[0]["id"], "--log", "--json").stdout)
    assert len(entries) == rows[0]["entries"]


def test_show_for_people(clew: Run, transcript: Path) -> None:
    clew("import", transcript.name)
    session = json.loads(clew("sessions", "--json").stdout)[0]["id"]
    for how in ("--view", "--log"):
        shown = clew("show", session, how).stdout
        assert "You are a careful coding agent." in shown
        assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("replay", "nowhere.json"), "nowhere.json"),
        (("replay", "empty.jsonl"), "empty"),
        (("replay", "."), "folder"),
        (("replay", "noise.bin"), "format"),
        (("replay", "session.json", "--policy", "nonesuch"), "linear, pi, qitos"),
        (("replay", "session.json", "--policy", "pi:keep=20k"), "20_000"),
        (("replay", "session.json", "--policy", "pi:nonesuch=1"), "nonesuch"),
        (("replay", "session.json", "--window", "500k"), "500_000"),
        (("replay", "session.json", "--window", "many"), "'many'"),
        (("replay", "session.json", "--window", "1.2.3k"), "'1.2.3k'"),
        (("replay", "session.json", "--window", "-5"), "--window takes a number of tokens, not -5"),
        (("replay", "session.json", "--window", "0"), "--window takes a number of tokens, not 0"),
        (("replay", "session.json", "--policy", "pi:version=3"), "'3' is none of '0.73.1', '1.6'"),
        (("replay", "session.json", "--window", "12"), "12"),
        (("replay", "session.json", "--prices", "nonesuch"), "nonesuch"),
        (("replay", "session.json", "--counter", "nonesuch"), "nonesuch"),
        (("replay",), "files"),
        (("replay", "session.json", "--nonesuch"), "--nonesuch"),
        (("nonesuch",), "nonesuch"),
        (("sessions",), "no store"),
        (("show", "abc"), "no store"),
        (("expand", "abc"), "SESSION:ENTRY"),
        (("import", "noise.bin"), "format"),
    ],
)
def test_refusals_are_one_line(
    clew: Run, transcript: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 20)
    assert words in refused(clew(*arguments, code=2))
    assert not (tmp_path / "store").exists()


def test_unknown_session_and_entry(clew: Run, transcript: Path) -> None:
    clew("import", transcript.name)
    session = json.loads(clew("sessions", "--json").stdout)[0]["id"]
    assert "zzz" in refused(clew("show", "zzz", code=2))
    assert "99999" in refused(clew("expand", f"{session}:99999", code=2))
    assert refused(clew("expand", code=2)).endswith("Missing argument 'entry'; see clew expand --help")


def test_the_version_is_the_package_s(clew: Run) -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    assert clew("--version").stdout == f"clew {declared}\n"
    assert package.__version__ == declared


def test_help_and_no_arguments(clew: Run) -> None:
    assert "replay" in clew("--help").stdout
    assert "replay" in clew().stdout


@pytest.mark.parametrize("number", ["²", "-1", "9" * 5_000, "0x1", ""])
def test_an_entry_has_a_number_of_a_sensible_size(clew: Run, transcript: Path, number: str) -> None:
    clew("import", transcript.name)
    session = json.loads(clew("sessions", "--json").stdout)[0]["id"]
    assert "an entry is written SESSION:ENTRY" in refused(clew("expand", f"{session}:{number}", code=2))


def test_the_store_may_be_an_address(clew: Run, transcript: Path, tmp_path: Path) -> None:
    before = {*tmp_path.iterdir()}
    assert "no store for http://" in refused(clew("import", transcript.name, "--db", "http://x/y", code=2))
    assert "the store's path is empty" in refused(clew("import", transcript.name, "--db", "sqlite:///", code=2))
    assert {*tmp_path.iterdir()} == before
    clew("import", transcript.name, "--db", "sqlite:///other.db")
    assert (tmp_path / "other.db").is_file()
    assert "session.json" in clew("sessions", "--db", "sqlite:///other.db").stdout


def test_a_setting_is_given_once(clew: Run, transcript: Path) -> None:
    done = clew("replay", transcript.name, "--policy", "pi:keep=2000,keep=3000", code=2)
    assert "sets keep twice" in refused(done)
    assert "--model is empty" in refused(clew("replay", transcript.name, "--model", " ", code=2))
