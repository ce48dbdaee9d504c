"""Import speed and memory: a 100 MB Claude Code session, read, and stored durably.

    python bench/imports.py [--mb 100] [--repeat 3]

The file is a generated session (user turns, replies of one to three calls, results as large as those
of real files, attachments, a compaction now and then), repeated with fresh ids. Each figure comes
from a process of its own: a bare msgspec decode of the same lines, the reader alone, and the import
into a SQLite file. Targets: reading at 0.25 × the bare decode, importing at 0.1 ×, both in 300 MB.
Processor seconds stand beside the wall clock: a busy machine or disk changes them less.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from clew.transcripts.formats import named, opened
from clew.transcripts.loading import import_file
from measure.table import table

START = datetime(2026, 1, 1)
TARGETS = {"read": 0.25, "import": 0.1}
MEMORY = 300
"""MB of resident memory that no process may exceed."""


class Session:
    """Writes the lines of one session, over and over."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        source = Path(__file__).resolve().parents[1] / "src" / "clew"
        self.words = [line for path in sorted(source.rglob("*.py")) for line in path.read_text().splitlines() if line]
        self.count = 0
        self.last: str | None = None

    def lines(self) -> Iterator[bytes]:
        """About 250 lines: nine turns and a compaction."""
        replies: list[str] = []
        for _ in range(9):
            yield self._line("user", message={"role": "user", "content": f"修复这个测试。{self._text(3)}"})
            for _ in range(self.random.randint(3, 7)):
                yield from self._reply(replies)
            yield from self._blocks([{"type": "text", "text": self._text(12)}], replies)
        before, kept = self.last, replies[-1:]
        self.last = None
        facts = {"trigger": "auto", "preTokens": 167_000, "preservedMessages": {"uuids": kept, "allUuids": kept}}
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": facts}
        yield self._line("system", logicalParentUuid=before, **boundary)
        summary = {"role": "user", "content": self._text(80)}
        yield self._line("user", isCompactSummary=True, isVisibleInTranscriptOnly=True, message=summary)

    def _reply(self, replies: list[str]) -> Iterator[bytes]:
        """A reply with one to three calls, and their results."""
        calls = [self._id("toolu") for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        names = [self.random.choice(("Bash", "Read", "Edit")) for _ in calls]
        blocks: list[dict[str, Any]] = [{"type": "text", "text": self._text(2)}]
        for call, name in zip(calls, names, strict=True):
            size = 1 if name != "Edit" else self.random.randint(5, 40)
            given = {"file_path": f"/w/src/{self.count}.py", "command": self._text(size), "description": "Run it"}
            blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
        yield from self._blocks(blocks, replies)
        for call, name in zip(calls, names, strict=True):
            text = self._text(int(self.random.lognormvariate(3.5, 1.0)) + 1)
            shown, extra = self._ran(name, text)
            block = {"type": "tool_result", "tool_use_id": call, "content": shown, "is_error": False}
            yield self._line("user", message={"role": "user", "content": [block]}, toolUseResult=extra)
        yield self._line("attachment", attachment={"type": "total_tokens_reminder", "text": "950000 tokens left"})

    def _ran(self, name: str, text: str) -> tuple[str, dict[str, Any]]:
        """What a tool shows the model, and what it tells the program beside it."""
        if name == "Bash":
            return text, {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        lines = text.splitlines()
        if name == "Read":
            file = {"filePath": "/w/a.py", "content": text, "numLines": len(lines), "startLine": 1}
            return "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, 1)), {"type": "text", "file": file}
        patch = [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 4, "lines": lines[:12]}]
        extra = {"filePath": "/w/a.py", "oldString": lines[0], "originalFile": text, "structuredPatch": patch}
        return "The file /w/a.py has been updated.", extra

    def _blocks(self, blocks: list[dict[str, Any]], replies: list[str]) -> Iterator[bytes]:
        """One line for each block of an API message."""
        id = self._id("msg")
        usage = {
            "input_tokens": 6,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": 60_000,
            "output_tokens": 300,
            "service_tier": "standard",
        }
        for n, block in enumerate(blocks):
            message: dict[str, Any] = {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": "claude-x",
                "content": [block],
            }
            message |= {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
            yield self._line("assistant", message=message, apiBlockIndex=n, requestedModel="claude-x")
            if n == 0 and self.last:
                replies.append(self.last)

    def _line(self, kind: str, **fields: Any) -> bytes:
        uuid = self._id("")
        line = {"parentUuid": self.last, "isSidechain": False, **fields, "type": kind, "uuid": uuid}
        minutes, seconds = divmod(self.count // 10, 60)
        line["timestamp"] = (
            f"2026-01-{1 + minutes // 1440 % 28:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}.000Z"
        )
        line |= {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": "/w",
            "sessionId": "5cfca641-6117-49e3-bde3-07cd65ae7afa",
        }
        line |= {"version": "2.1.332", "gitBranch": "main"}
        self.last = uuid
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count:024x}" if kind else f"{self.count:08x}-0000-4000-8000-{self.count:012x}"

    def _text(self, lines: int) -> str:
        at = self.random.randrange(len(self.words))
        return "\n".join(self.words[at : at + lines]) or "ok"


def write(path: Path, size: int) -> None:
    """A transcript of at least `size` bytes, ending with a whole session."""
    session = Session()
    with path.open("wb") as file:
        while file.tell() < size:
            file.writelines(session.lines())


def bare(path: Path, folder: Path) -> None:
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as file:
        for line in file:
            decode(line)


def read(path: Path, folder: Path) -> None:
    with opened(path) as file:
        for _ in named("claude-code").read(file):
            pass


def import_(path: Path, folder: Path) -> None:
    session, report = import_file(path, folder / f"{time.time_ns()}.db")
    session.close()
    assert report.added
    assert not report.skipped


JOBS: dict[str, Callable[[Path, Path], None]] = {"bare": bare, "read": read, "import": import_}


def measured(job: str, path: Path, folder: Path) -> tuple[float, ...]:
    """Seconds, processor seconds and peak MB of one job in a process of its own."""
    command = [sys.executable, __file__, "--job", job, "--file", str(path), "--folder", str(folder)]
    return tuple(map(float, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--job", choices=JOBS)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.job:
        start, busy = time.perf_counter(), time.process_time()
        JOBS[given.job](given.file, given.folder)
        took, busy = time.perf_counter() - start, time.process_time() - busy
        print(took, busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = folder / "session.jsonl"
        write(path, given.mb * 1_000_000)
        megabytes = path.stat().st_size / 1e6
        with path.open("rb") as file:
            lines = sum(1 for _ in file)
        print(
            f"{megabytes:.0f} MB, {lines:,} lines of {megabytes * 1e6 / lines:,.0f} bytes; medians of {given.repeat}\n"
        )
        rounds = [{job: measured(job, path, folder) for job in JOBS} for _ in range(given.repeat)]
    rows = []
    for job in JOBS:
        seconds, busy, memory = (median(run[job][i] for run in rounds) for i in range(3))
        speed, cost = (median(run["bare"][i] / run[job][i] for run in rounds) for i in range(2))
        aim = f"{TARGETS[job]} ×" if job in TARGETS else ""
        row = (f"{seconds:.2f}", f"{megabytes / seconds:.1f}", f"{speed:.3f} ×", aim, f"{busy:.2f}", f"{cost:.3f} ×")
        rows.append((job, *row, f"{memory:.0f}"))
    print(table(["", "s", "MB/s", "to bare", "aim", "processor s", "to bare", "peak MB"], rows))
    print(f"\nThe aim for memory: under {MEMORY} MB.")


if __name__ == "__main__":
    main()
