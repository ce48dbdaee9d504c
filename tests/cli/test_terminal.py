"""Output and its reader: what comes from a transcript must not reach a terminal as a command, and readers may leave."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

EVIL = (
    "\x1b]0;title\x07\x1b[31mred\x9b31m \x7f\x08\r [bold]b[/bold] [/] [link=http://x]l[/link] :smile: \u202eabc \\[red]"
)
SHOWN = "␛]0;title␇␛[31mred\\u009b31m"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a transcript whose name, texts, tool names and arguments are hostile."""
    call = {"id": "1", "type": "function", "function": {"name": EVIL, "arguments": json.dumps({"x": EVIL})}}
    lines = [
        {"role": "user", "content": EVIL},
        {"role": "assistant", "content": EVIL, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": EVIL + "</script><script>alert(1)</script>"},
        {"role": "assistant", "content": EVIL},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + f"\n{{{EVIL}\n"
    (tmp_path / "\x1b[31m[bold]\u202e.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "clew", *arguments]


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "CLEW_DB": str(folder / "store.db"), "COLUMNS": "120", **more}


def run(folder: Path, *arguments: str, code: int = 0, **more: str) -> str:
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        timeout=120,
        check=False,
    )
    out = (done.stdout + done.stderr).decode()
    assert done.returncode == code, out
    assert "Traceback" not in out
    return out


def transcript(folder: Path) -> str:
    return next(file.name for file in folder.iterdir() if file.suffix == ".jsonl")


def outputs(folder: Path) -> list[str]:
    file = transcript(folder)
    shown = [run(folder, "import", file)]
    id = json.loads(run(folder, "sessions", "--json"))[0]["id"]
    asked: Sequence[tuple[str, ...]] = [
        ("sessions",),
        ("sessions", "--json"),
        ("show", id),
        ("show", id, "--log"),
        ("show", id, "--log", "--json"),
        ("expand", f"{id}:2"),
        ("expand", f"{id}:3"),
        ("replay", file, "--at", "2", "--html", "page.html"),
        ("replay", file, "--json"),
    ]
    shown += [run(folder, *arguments) for arguments in asked]
    refused = [("show", EVIL), ("replay", EVIL), ("replay", file, "--policy", EVIL), ("replay", file, "--window", EVIL)]
    return shown + [run(folder, *arguments, code=2) for arguments in refused]


def test_no_command_of_a_terminal_gets_through(folder: Path) -> None:
    for shown in outputs(folder):
        assert RAW.search(shown) is None, shown


def test_what_was_said_is_shown_as_it_stands(folder: Path) -> None:
    run(folder, "import", transcript(folder))
    id = json.loads(run(folder, "sessions", "--json"))[0]["id"]
    shown = run(folder, "expand", f"{id}:1")
    assert f"{SHOWN} ␡␈␍ [bold]b[/bold] [/] [link=http://x]l[/link] :smile: \\u202eabc \\[red]" in shown
    assert json.loads(run(folder, "expand", f"{id}:1", "--json"))[0]["body"]["message"]["parts"][0]["text"] == EVIL


def test_a_page_holds_no_element_of_the_transcript(folder: Path) -> None:
    run(folder, "replay", transcript(folder), "--html", "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "alert(1)" in page


@pytest.mark.parametrize("columns", ["1", "20", "40"])
def test_narrow_terminals(folder: Path, columns: str) -> None:
    file = transcript(folder)
    run(folder, "import", file, COLUMNS=columns)
    run(folder, "sessions", COLUMNS=columns)
    run(folder, "replay", file, "--at", "1", COLUMNS=columns, NO_COLOR="1")


def test_an_ascii_terminal_gets_escapes(folder: Path) -> None:
    out = run(folder, "replay", transcript(folder), PYTHONIOENCODING="ascii")
    assert out.isascii()
    assert "\\u2588" in out


@pytest.mark.parametrize("arguments", [("--log",), ("--view",), ("--log", "--json"), ("--view", "--json")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_may_leave(tmp_path: Path, arguments: tuple[str, ...], unbuffered: str) -> None:
    """`clew show … | head -1`: more than a pipe holds is written, and nobody reads it."""
    long = [{"role": role, "content": "word " * 50} for _ in range(1_000) for role in ("user", "assistant")]
    (tmp_path / "long.json").write_text(json.dumps(long), encoding="utf-8")
    run(tmp_path, "import", "long.json")
    id = json.loads(run(tmp_path, "sessions", "--json"))[0]["id"]
    with subprocess.Popen(
        command("show", id, *arguments),
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONUNBUFFERED=unbuffered),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


def test_a_full_disk_below_the_output(folder: Path) -> None:
    run(folder, "import", transcript(folder))
    for arguments in (("sessions",), ("sessions", "--json")):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                command(*arguments), env=environment(folder), stdout=full, stderr=subprocess.PIPE, check=False
            )
        assert done.returncode == 2
        assert done.stderr.decode().splitlines() == ["clew: [Errno 28] No space left on device"]


def test_a_file_whose_name_is_no_utf8(folder: Path) -> None:
    file = Path(transcript(folder))
    odd = "\udcff.jsonl"
    (folder / odd).write_bytes((folder / file).read_bytes())
    assert "\\udcff.jsonl: openai, session" in run(folder, "import", odd)
    assert "0 entries added" in run(folder, "import", odd)
    assert json.loads(run(folder, "import", odd, "--json"))[0]["present"] == 4
    assert json.loads(run(folder, "replay", odd, "--json", "--html", "\udcff.html"))["source"] == "\\udcff.jsonl"
    assert (folder / "\udcff.html").exists()
    assert len(run(folder, "show", "\udcff", code=2).splitlines()) == 1


def test_a_store_of_a_newer_version_is_one_line(folder: Path) -> None:
    run(folder, "import", transcript(folder))
    raw = sqlite3.connect(folder / "store.db")
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.commit()
    raw.close()
    (line,) = run(folder, "sessions", code=2).splitlines()
    assert "update Clew to open it" in line
