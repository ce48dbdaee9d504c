"""JSON Lines as found on disk."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.transcripts import lines as module
from clew.transcripts.events import Damage
from clew.transcripts.lines import Record, numbered, records


def read(data: bytes) -> tuple[list[object], list[Damage]]:
    found = list(records(numbered(io.BytesIO(data))))
    values: list[object] = [r.value for r in found if isinstance(r, Record)]
    return values, [d for d in found if isinstance(d, Damage)]


ONE, TWO = b'{"type":"a","n":1}', b'{"type":"b","n":2}'


@pytest.mark.parametrize(
    ("data", "reason", "lost"),
    [
        (b"\xef\xbb\xbf" + ONE + b"\n", "byte order mark", False),
        (b"\0" * 300 + ONE + b"\n", "300 NUL bytes", False),
        (b'{"type":"a","n":1,"x":"\xff\xfe"}\n', "invalid UTF-8", False),
        (b'{"type":"a","n":1,"x":"\\ud83d"}\n', "UTF-8 cannot hold", False),
        (b'{"type":"a","n":1,"x":1e999}\n', "JSON or UTF-8 cannot hold", False),
        (b'{"type":"a","n":1,"x":"tab\there"}\n', "control characters", False),
        (b'{"type":"x","text":"cut in the mid' + ONE + b"\n", "part of a record", False),
        (ONE + b"}}junk\n", "part of a record", False),
    ],
)
def test_what_can_be_read_of_a_damaged_line_is_read_and_the_rest_reported(data: bytes, reason: str, lost: bool) -> None:
    values, damage = read(TWO + b"\n" + data + TWO + b"\n")
    assert len(values) == 3
    assert values[1]["type"] == "a"  # type: ignore[index]
    assert values[1]["n"] == 1  # type: ignore[index]
    assert [(d.line, d.lost) for d in damage] == [(2, lost)]
    assert reason in damage[0].reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\0\n", "NUL"),
        (b"not json\n", "not JSON"),
        (b"[1,2]\n", "a JSON list"),
        (b"null\n", "a JSON NoneType"),
        (b'{"type":"a",' * 3000 + b"\n", "not JSON"),
        (b'{"a":' * 100_000 + b"\n", "not JSON"),
    ],
)
def test_a_line_of_which_nothing_can_be_used_is_skipped_alone(data: bytes, reason: str) -> None:
    values, damage = read(ONE + b"\n" + data + TWO + b"\n")
    assert values == [json.loads(ONE), json.loads(TWO)]
    assert [(d.line, d.lost) for d in damage] == [(2, True)]
    assert reason in damage[0].reason


def test_two_records_fused_on_one_line_are_both_read() -> None:
    values, damage = read(ONE + TWO + b"\n")
    assert values == [json.loads(ONE), json.loads(TWO)]
    assert "several records on one line" in damage[0].reason


def test_a_half_record_at_the_end_is_told_from_a_broken_line() -> None:
    values, damage = read(ONE + b"\n" + TWO[:-4])
    assert values == [json.loads(ONE)]
    assert damage == [Damage(2, "incomplete last line")]


def test_a_record_inside_an_incomplete_last_line_is_not_taken_for_a_line() -> None:
    values, damage = read(ONE + b"\n" + b'{"type":"a","message":{"role":"user","content":"x"}')
    assert values == [json.loads(ONE)]
    assert damage[0].lost


def test_raw_newlines_inside_a_string_cost_that_record_only() -> None:
    values, damage = read(ONE + b"\n" + b'{"type":"x","text":"line\nbreak"}\n' + TWO + b"\n")
    assert values == [json.loads(ONE), json.loads(TWO)]
    assert [d.line for d in damage] == [2, 3]


def test_empty_lines_are_nothing() -> None:
    assert read(b"\n" + ONE + b"\r\n\n  \n" + TWO) == ([json.loads(ONE), json.loads(TWO)], [])


def test_a_line_too_long_is_skipped_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 100)
    values, damage = read(ONE + b"\n" + b'{"x":"' + b"y" * 1000 + b'"}\n' + TWO + b"\n")
    assert values == [json.loads(ONE), json.loads(TWO)]
    assert damage == [Damage(2, "longer than 100 bytes")]


@given(st.binary(max_size=60), st.integers(0, 17), st.sampled_from(["insert", "replace"]))
def test_damage_to_one_line_leaves_the_others_alone(noise: bytes, at: int, how: str) -> None:
    noise = noise.replace(b"\n", b"")
    middle = ONE[:at] + noise + ONE[at + (len(noise) if how == "replace" else 0) :]
    values, damage = read(TWO + b"\n" + middle + b"\n" + TWO + b"\n")
    assert values[0] == values[-1] == json.loads(TWO)
    assert all(d.line == 2 for d in damage)
    assert len(values) > 2 or damage or not middle.strip()
