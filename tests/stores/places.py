"""The stores there are, each as an address of a new, empty one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from servers import Postgres, Redis

SQL = ("file", "memory", "postgresql")
PLACES = (*SQL, "redis", "redis over a file", "json")

New = Callable[[], str]
"""Gives the address of a new, empty store."""


def maker(kind: str, folder: Path, postgres: Postgres, redis: Redis) -> New:
    """Makes stores of a kind."""
    numbers = itertools.count(1)

    def new() -> str:
        n = next(numbers)
        match kind:
            case "file":
                return str(folder / f"agent{n}.db")
            case "memory":
                return "memory://"
            case "postgresql":
                return postgres.address(postgres.database())
            case "redis":
                return redis.address()
            case "redis over a file":
                return f"{redis.address()}&write_behind={folder}/kept{n}.db"
            case "json":
                return f"json:{folder}/memory{n}.json"
        raise AssertionError(kind)

    return new
