"""Load and faults on PostgreSQL: 8 writers and 8 readers for two minutes, the server killed and restarted twice.

Prints Markdown. Every acknowledged write must be there once; ends with status 1 when one is not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measure.table import table
from stores.faults import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=8)
    given = parser.parse_args()
    report = run(given.seconds, given.kills, writers=given.writers, readers=given.readers)
    rows = [
        ["messages acknowledged, in 8 sessions", f"{report.messages:,}"],
        ["records acknowledged, in one memory", f"{report.records:,}"],
        ["lost, doubled, or out of place", f"{len(report.faults):,}"],
        ["looks of the readers", f"{report.looks:,}"],
        ["median write (ms)", f"{1_000 * report.median:.1f}"],
        ["longest write, over a restart (s)", f"{report.longest:.1f}"],
    ]
    print(table([f"{given.seconds:.0f} s, {given.kills} kills", ""], rows))
    for fault in report.faults:
        print(f"- {fault}")
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()
