"""A transcript as one conversation, for replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.errors import UnknownName
from clew.messages import Usage
from clew.transcripts import recording
from transcripts.scribe import Claude, Pi, say, written
from transcripts.test_dumps import CHAT


def test_the_active_path_from_the_very_first_message(tmp_path: Path) -> None:
    log = Claude()
    log.user("u1", "first")
    log.text("a1", "m1", "one")
    log.user("x", "a side path")
    log.user("u2", "second", parent="a1")
    log.text("a2", "m2", "two")
    log.compact("b", "so far", kept=["a2"])
    log.user("u3", "third")
    tape = recording(written(tmp_path, *log.lines, b"broken"))
    assert [m.text for m in tape.messages] == ["first", "one", "second", "two", "third"]
    assert [m.usage for m in tape.messages if m.role == "assistant"] == [Usage(3, 7, 100)] * 2
    assert list(tape.times) == sorted(tape.times)
    assert tape.times[0] == 1767225600.0
    assert tape.skipped == ((9, "not JSON"),)
    mark = tape.compactions[0]
    assert (mark.before, mark.summary, mark.tokens_before, mark.tokens_after) == (4, "so far", 1000, 100)


def test_failed_attempts_and_questions_asked_again_are_left_out(tmp_path: Path) -> None:
    log = Pi()
    log.user("u1", "hello?", parent=None)
    log.failed("e1")
    log.user("u2", "hello?")
    log.assistant("a", say("hi"))
    tape = recording(written(tmp_path, *log.lines))
    assert [m.text for m in tape.messages] == ["hello?", "hi"]


def test_one_of_several_conversations(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{"traj": CHAT[:n]} for n in (2, 3, 6)]))
    assert [len(recording(path, run=n).messages) for n in (1, 2, 3)] == [2, 3, 6]
    assert recording(path).runs == 3
    with pytest.raises(UnknownName, match="3 conversations"):
        recording(path, run=4)
    with pytest.raises(UnknownName):
        recording(path, run=0)


def test_a_summary_of_a_branch_that_was_left_is_part_of_the_conversation(tmp_path: Path) -> None:
    log = Pi()
    log.user("u1", "try it", parent=None)
    log.assistant("a1", say("it fails"))
    log.entry("branch_summary", "s", parent="u1", fromId="a1", summary="it failed")
    log.user("u2", "try again")
    tape = recording(written(tmp_path, *log.lines))
    assert [m.text.count("it failed") for m in tape.messages] == [0, 1, 0]
