"""How long `import clew` takes, and the first use of a session: median of fresh interpreters."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

from measure.table import table

TIMED = "import time; t = time.perf_counter(); {}; print((time.perf_counter() - t) * 1000)"
STATEMENTS = (
    "pass",
    "import clew",
    "import clew.policies",
    "from clew import Session",
    "import sqlalchemy",
    "import litellm",
)


def milliseconds(statement: str) -> float | None:
    done = subprocess.run([sys.executable, "-c", TIMED.format(statement)], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="interpreters for each statement")
    rounds = parser.parse_args().rounds
    rows = []
    for statement in STATEMENTS:
        if milliseconds(statement) is None:  # also fills the file cache
            rows.append((f"`{statement}`", "not installed", ""))
            continue
        times = [t for _ in range(rounds) if (t := milliseconds(statement)) is not None]
        rows.append((f"`{statement}`", f"{statistics.median(times):.1f}", f"{max(times):.1f}"))
    print(table(["statement", "median, ms", "slowest, ms"], rows))
    print("\nThe aim: `import clew` under 100 ms.")


if __name__ == "__main__":
    main()
