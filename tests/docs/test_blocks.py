"""Every code block of the README and the docs runs.

The Python blocks of a page are one program, run from top to bottom in a new folder that holds
`examples/`. The `$ ` lines of its console blocks are run one by one in the same folder afterwards;
they must succeed, or fail with the exit code that the page shows as `# exit 2`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
RUN = {"python", "console"}
SHOWN = {"text", "json", "toml", "yaml", "jsonl", "mermaid", "make"}


def blocks(page: Path) -> list[tuple[str, str]]:
    found = []
    for indent, language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = [line.removeprefix(indent) for line in body.splitlines()]
        found.append((language, "\n".join(lines)))
    return found


def commands(body: str) -> list[tuple[list[str], int]]:
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            command, _, code = line[2:].partition("  # exit ")
            found.append((shlex.split(command, comments=True), int(code) if code else 0))
    return found


def servers(page: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Where a page that uses servers finds them: real ones, with a database `agents`."""
    text, found = page.read_text(encoding="utf-8"), {}
    if "postgresql:///agents" in text:
        postgres = request.getfixturevalue("postgres")
        postgres.run("postgres", "CREATE DATABASE agents")
        request.addfinalizer(lambda: postgres.run("postgres", "DROP DATABASE agents WITH (FORCE)"))
        found |= {"PGHOST": str(postgres.folder), "PGUSER": "owner"}
    if "REDIS_URL" in text:
        found["REDIS_URL"] = request.getfixturevalue("redis_server").address()
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = blocks(page)
    unknown = {language for language, _ in found} - RUN - SHOWN
    assert not unknown, f"blocks of a kind that is neither run nor plain: {unknown}"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {
        **os.environ,
        "CLEW_DB": str(tmp_path / "clew.db"),
        "PYTHONWARNINGS": "error",
        **servers(page, request),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    program = "\n\n".join(body for language, body in found if language == "python")
    if program:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}\n---\n{done.stdout}\n{done.stderr}"
    for language, body in found:
        for command, code in commands(body) if language == "console" else ():
            if command[0] in ("make", "git", "pip", "cd"):
                continue
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
            )
            assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"


def test_readme_names_two_commands() -> None:
    found = [c for language, body in blocks(ROOT / "README.md") if language == "console" for c in commands(body)]
    assert (["make", "demo"], 0) in found
    assert (["make", "test"], 0) in found
