"""The golden cases: inputs, and what the real upstream programs made of them.

A case is a JSON file `<system>/<name>.json`. The adapter of its system, `adapter_<system>.py`
(dashes as underscores), exports

- `COMPONENTS`: for each `component` named in the cases, a function from the case to what Clew
  makes of its input, in the shape of the case's output;
- optionally `expected(case)`: what of the case is compared (default: its `output`);
- optionally `compare(case, got) -> list[str]`: the differences, one line each (default: every
  place where `expected(case)` and `got` are not equal).

Differences that are meant stand in DIFFERENCES.md, with the reason; all others fail, and so does a
listed one that no longer differs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
OWN = HERE / "cases"


@dataclass(frozen=True)
class Case:
    """One golden case."""

    system: str
    name: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.system}/{self.name}"

    @property
    def component(self) -> str:
        return str(self.data["component"])


@dataclass(frozen=True)
class Listed:
    """A row of DIFFERENCES.md: `what` is the name of a case or of a component."""

    system: str
    what: str
    reason: str

    def covers(self, case: Case) -> bool:
        return self.system == case.system and self.what in (case.name, case.component)


def folder() -> Path:
    """Where the cases are read from: `$CLEW_GOLDEN`, else the repository's own."""
    return Path(os.environ.get("CLEW_GOLDEN") or OWN)


def adapters() -> dict[str, ModuleType]:
    """The adapter modules, by the name of the folder that holds their system's cases."""
    names = sorted(path.stem for path in HERE.glob("adapter_*.py"))
    return {name.removeprefix("adapter_").replace("_", "-"): import_module(f"golden.{name}") for name in names}


def cases() -> list[Case]:
    """Every case of every system that has an adapter."""
    return [
        Case(system, path.stem, json.loads(path.read_text("utf-8")))
        for system in adapters()
        for path in sorted((folder() / system).glob("*.json"))
    ]


def differences() -> list[Listed]:
    """The rows of the table in DIFFERENCES.md."""
    rows = []
    for line in (HERE / "DIFFERENCES.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] != "system" and set(cells[0]) != {"-"}:
            rows.append(Listed(*cells))
    return rows


def outcome(case: Case) -> list[str]:
    """How Clew's output differs from the case's, one line for each place; empty when they agree."""
    adapter = adapters()[case.system]
    produce = adapter.COMPONENTS.get(case.component)
    if produce is None:
        return [f"no adapter for component {case.component!r}"]
    got = produce(case.data)
    if hasattr(adapter, "compare"):
        return list(adapter.compare(case.data, got))
    expected = adapter.expected(case.data) if hasattr(adapter, "expected") else case.data["output"]
    return list(diff(expected, got))


def diff(expected: Any, got: Any, path: str = "output") -> Iterator[str]:
    """Every place where two JSON values are not equal."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(k for k in got if k not in expected)]:
            if key not in got:
                yield f"{path}.{key}: missing, expected {_short(expected[key])}"
            elif key not in expected:
                yield f"{path}.{key}: unexpected {_short(got[key])}"
            else:
                yield from diff(expected[key], got[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(got, list | tuple):
        if len(expected) != len(got):
            yield f"{path}: {len(got)} items, expected {len(expected)}"
        for i, (a, b) in enumerate(zip(expected, got, strict=False)):
            yield from diff(a, b, f"{path}[{i}]")
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        yield f"{path}: {_short(got)}, expected {_short(expected)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:140]} … {text[-50:]}"
