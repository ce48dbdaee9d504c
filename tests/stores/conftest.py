"""A test that asks for `new` runs over every place, one that asks for `new_sql` over every store of sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from servers import Postgres, Redis
from stores.places import PLACES, SQL, New, maker


@pytest.fixture(params=PLACES)
def new(request: pytest.FixtureRequest, tmp_path: Path, postgres: Postgres, redis_server: Redis) -> New:
    return maker(request.param, tmp_path, postgres, redis_server)


@pytest.fixture(params=SQL)
def new_sql(request: pytest.FixtureRequest, tmp_path: Path, postgres: Postgres, redis_server: Redis) -> New:
    return maker(request.param, tmp_path, postgres, redis_server)
