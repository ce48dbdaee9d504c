"""The command, run as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def clew(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command in an empty folder with its own store, 80 columns wide."""

    def run(*arguments: str, code: int = 0, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CLEW_DB": str(tmp_path / "store" / "clew.db"), "COLUMNS": "80", **more}
        done = subprocess.run(
            [sys.executable, "-m", "clew", *arguments],
            cwd=tmp_path,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run
