"""Settings of the whole test run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # tests share modules: `import conversations`, `import provider_rules`

if TYPE_CHECKING:
    from servers import Postgres, Redis

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("ci", max_examples=500, deadline=None, suppress_health_check=_SLOW, derandomize=True)
settings.load_profile(os.environ.get("CLEW_HYPOTHESIS") or ("ci" if os.environ.get("CI") == "true" else "quick"))


def pytest_report_header() -> str:
    from recordings import RECORDINGS

    return f"recordings of other tools: {RECORDINGS if RECORDINGS.exists() else 'none here (CONTRIBUTING.md)'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that have one case for each recording when there is no recording."""
    from recordings import RECORDINGS

    if RECORDINGS.exists():
        return
    without = [
        i for i in items if any("empty parameter set" in m.kwargs.get("reason", "") for m in i.iter_markers("skip"))
    ]
    config.hook.pytest_deselected(items=without)
    items[:] = [i for i in items if i not in without]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A PostgreSQL server for the run (of this worker); it starts in a second."""
    from servers import Postgres

    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres(postgres_server: Postgres) -> Iterator[Postgres]:
    """The server, for databases that are this test's alone."""
    yield postgres_server
    postgres_server.take_back()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """A Redis server for the run (of this worker)."""
    from servers import Redis

    server = Redis()
    try:
        server.start()
        yield server
    finally:
        server.remove()
