"""Every golden case gives what the upstream program gave, or stands in DIFFERENCES.md."""

from __future__ import annotations

import pytest

from golden.runner import OWN, Case, adapters, cases, differences, folder, outcome

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    found = outcome(case)
    if any(row.covers(case) for row in differences()):
        return  # whether the row is still needed: test_listed_differences_differ
    assert not found, f"{case.data.get('scenario', '')}\n" + "\n".join(found[:40])


def test_there_are_cases() -> None:
    assert CASES, f"no cases for {', '.join(adapters())} in {folder()}"


def test_listed_differences_differ() -> None:
    for row in differences():
        where = f"{row.system}/{row.what}"
        assert row.reason, f"{where}: a difference needs a reason"
        covered = [case for case in CASES if row.covers(case)]
        assert covered or folder() != OWN, f"{where}: no case has this name or component"
        assert not covered or any(outcome(case) for case in covered), f"{where} agrees now: take the row out"
