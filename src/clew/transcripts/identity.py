"""Which conversation a transcript holds, so that a longer version of it is known again."""

from __future__ import annotations

import io
import os
from pathlib import Path

from clew.transcripts.formats import opened
from clew.transcripts.lines import Record, numbered, records
from clew.transcripts.sniffing import PROBE


def identity(path: Path | str, format: str) -> str:
    """A name for the conversation: the tool's own session id, or the file's place when it has none.

    A Claude Code subagent's file carries the id of the session it works for, and is named with its own.
    """
    with opened(path) as file:
        head = file.read(PROBE)
    for record in records(numbered(io.BytesIO(head))) if format in ("claude-code", "pi") else ():
        value = record.value if isinstance(record, Record) else {}
        if format == "pi" and value.get("type") == "session" and isinstance(value.get("id"), str):
            return f"{format}:{value['id']}"
        if format == "claude-code" and isinstance(value.get("sessionId"), str):
            agent = value.get("agentId") if value.get("isSidechain") is True else None
            return f"{format}:{value['sessionId']}" + (f"/{agent}" if agent else "")
    return f"{format}:{os.fsencode(Path(path).resolve()).decode(errors='backslashreplace')}"
