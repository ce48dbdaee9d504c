"""Load and faults on PostgreSQL, the short way; `bench/faults.py` takes two minutes."""

from __future__ import annotations

from stores.faults import run


def test_every_acknowledged_write_is_there_once_over_two_kills_of_the_server() -> None:
    report = run(6.0, kills=2, durable=False)
    assert report.faults == ()
    assert report.messages >= 8
    assert report.records >= 8
    assert report.looks >= 8
