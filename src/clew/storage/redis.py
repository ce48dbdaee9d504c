"""Redis: the changes of memories, for what is hot. All that is particular to it is here.

    redis://user:password@host:6379/0?ttl=3600&patience=60

The address is that of redis-py (`rediss://` with TLS, `unix://` for a socket), with two parameters of ours. Redis
keeps what it was told as well as it is set to: with `appendonly yes` and `appendfsync always` a change is on its disk
when `append` returns; with less, a crash of the server may take the last ones, and so may its `maxmemory` policy.

A namespace is four keys, which begin with `clew:{namespace}`: the list of its changes, their positions by uid, the
first position of each record, and facts about the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec
import redis
from msgspec import Struct

from clew.errors import Interrupted, StoreError
from clew.storage.changes import Decide, Restarted
from clew.storage.patience import patiently
from clew.storage.rows import ChangeRow

T = TypeVar("T")

SCHEMES = ("redis", "rediss", "unix")

PATIENCE = 60.0
"""Seconds for which an operation is tried again: a restart takes a few, a failover about thirty."""

ANSWER = 30.0
"""Seconds that the server has for one answer."""

READ = 5_000
"""Changes fetched at a time."""

_READ = """
local born = redis.call('HGET', KEYS[2], 'born') or ''
local length = redis.call('LLEN', KEYS[1])
return {born, length, redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2])}
"""

_APPEND = """
local born = redis.call('HGET', KEYS[2], 'born') or ''
local length = redis.call('LLEN', KEYS[1])
if born ~= ARGV[1] or length ~= tonumber(ARGV[2]) then return {'moved'} end
if born == '' then redis.call('HSET', KEYS[2], 'born', ARGV[3]) end
local newest = tonumber(redis.call('HGET', KEYS[2], 'newest') or '0')
local placed = {'added'}
for i = 6, #ARGV, 5 do
  local uid, at, record, marks = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  if redis.call('HEXISTS', KEYS[3], uid) == 1 then
    placed[#placed + 1] = 0
  else
    length = redis.call('RPUSH', KEYS[1], ARGV[i + 4])
    redis.call('HSET', KEYS[3], uid, length)
    placed[#placed + 1] = length
    if record ~= '' then redis.call('HSETNX', KEYS[4], record, length) end
    if marks == '1' then
      redis.call('HSET', KEYS[2], 'marks', (redis.call('HGET', KEYS[2], 'marks') or '') .. length .. ' ')
    end
    if at < newest then redis.call('HSET', KEYS[2], 'mixed', '1') else
      newest = at
      redis.call('HSET', KEYS[2], 'newest', ARGV[i + 1])
    end
  end
end
local ttl = tonumber(ARGV[4])
for _, key in ipairs(KEYS) do
  if ttl > 0 and ARGV[5] == '0' then redis.call('EXPIRE', key, ttl) elseif ttl > 0 then redis.call('PERSIST', key) end
end
return placed
"""
"""Adds changes to a log that still is as long as it was. A change that is there already, by its uid, has place 0."""

_FLUSHED = """
if (redis.call('HGET', KEYS[2], 'born') or '') ~= ARGV[1] then return 0 end
local flushed = math.max(tonumber(redis.call('HGET', KEYS[2], 'flushed') or '0'), tonumber(ARGV[2]))
redis.call('HSET', KEYS[2], 'flushed', flushed)
if tonumber(ARGV[3]) > 0 and flushed == redis.call('LLEN', KEYS[1]) then
  for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[3]) end
end
return flushed
"""
"""Notes how far the log has been written elsewhere too; only what has been written may expire."""

_REPLACE = """
if (redis.call('HGET', KEYS[2], 'born') or '') ~= ARGV[1] then return 0 end
for i = 2, #ARGV, 2 do redis.call('LSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
"""
"""Puts changes in the place of others, unless the log has begun anew."""


class Address(Struct, frozen=True):
    """An address in its parts: what redis-py gets, what messages show, and our own parameters."""

    url: str
    shown: str
    ttl: int
    patience: float
    write_behind: str

    @classmethod
    def of(cls, where: str) -> Address:
        """Takes an address apart. Raises `StoreError` when it is none."""
        scheme, host, path, query, _ = urlsplit(where)
        given = dict(parse_qsl(query, keep_blank_values=True))
        ours = {name: given.pop(name, "") for name in ("ttl", "patience", "write_behind")}
        user, at, rest = host.rpartition("@")
        shown = f"{scheme}://{user.partition(':')[0]}{at}{rest}{path}"
        url = f"{scheme}://{host}{path}?{urlencode(given, quote_via=quote)}"
        try:
            ttl, patience = int(ours["ttl"] or 0), float(ours["patience"] or PATIENCE)
            redis.Redis.from_url(url).close()
        except (ValueError, TypeError) as error:
            raise StoreError(f"{shown}: {error}; an address is redis://USER:PASSWORD@HOST:PORT/NUMBER") from error
        return cls(url, shown, ttl, patience, ours["write_behind"])


class Tail(NamedTuple):
    """The end of a log: its last changes, and what is known of the rest without reading it.

    `length` is the log's, `firsts` the first position of each record the changes concern, `newest` the time of the
    newest change; `mixed` tells that some changes came after newer ones (a merge brought them).
    """

    length: int
    rows: list[ChangeRow]
    firsts: dict[str, int]
    marks: list[ChangeRow]
    newest: float
    mixed: bool


class RedisChanges:
    """The changes of one namespace in Redis: a `ChangeLog`.

    `ttl` is after how many seconds without a write the memory is gone (0: never), `source` gives the changes of a log
    that Redis has lost or let go; with it, what has not been `flushed` there does not expire.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        where: str,
        *,
        ttl: int = 0,
        patience: float = PATIENCE,
        source: Callable[[], list[ChangeRow]] | None = None,
    ) -> None:
        self.namespace = namespace
        self.where = where
        self._client = client
        self._ttl = ttl
        self._patience = patience
        self._source = source
        self._born: str | None = None
        self._keys = [f"clew:{{{namespace}}}:{name}" for name in ("changes", "facts", "places", "records")]
        scripts = (_READ, _APPEND, _FLUSHED, _REPLACE)
        self._read, self._append, self._note, self._replace = map(client.register_script, scripts)

    def after(self, position: int) -> list[ChangeRow]:
        return self._again(lambda: self._after(position))

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        rows: list[ChangeRow] = []
        doubtful = False

        def work() -> list[ChangeRow]:
            nonlocal rows, doubtful
            while True:
                if doubtful and len(there := self._placed(rows)) == len(rows):
                    return there  # it had been written when the connection was lost
                fresh = self._after(after)
                length = fresh[-1].position if fresh else after
                rows = list({row.uid: row for row in decide(fresh)}.values())
                doubtful = True
                added = self._add(length, rows)
                doubtful = False
                if added is not None:
                    return added

        return self._again(work)

    def rewrite(self, rows: Sequence[ChangeRow]) -> None:
        arguments: list[Any] = [self._born or ""]
        for row in rows:
            arguments += (row.position - 1, _packed(row))
        if rows and not self._again(lambda: self._replace(self._keys, arguments)):
            raise Restarted(f"{self.where}: the memory of {self.namespace} has expired or begun anew")

    def tail(self, n: int) -> Tail:
        """The last `n` changes, however long the log is."""
        return self._again(lambda: self._tail(n))

    def flushed(self, position: int | None = None) -> int:
        """How far the log has been written elsewhere; with a position, notes that it has been up to there."""
        if position is None:
            found = self._again(lambda: self._client.hget(self._keys[1], "flushed"))
            return int(found or 0)
        return int(self._again(lambda: self._note(self._keys, [self._born or "", position, self._ttl])))

    # -- inside

    def _after(self, position: int) -> list[ChangeRow]:
        rows: list[ChangeRow] = []
        before = self._born
        while True:
            start = rows[-1].position if rows else position
            born, length, found = self._read(self._keys, [start, start + READ - 1])
            if length == 0 and self._source is not None and self._refilled():
                continue
            self._born = born.decode()
            if length < position or (position > 0 and before not in (None, self._born)):
                raise Restarted(f"{self.where}: the memory of {self.namespace} has expired or begun anew")
            rows += (_unpacked(start + n, packed) for n, packed in enumerate(found, 1))
            if len(found) < READ:
                return rows

    def _refilled(self) -> bool:
        rows = self._source() if self._source is not None else []
        self._born = ""
        if not rows or self._add(0, rows) is None:
            return bool(rows)
        self._note(self._keys, [self._born, len(rows), self._ttl])
        return True

    def _add(self, length: int, rows: Sequence[ChangeRow]) -> list[ChangeRow] | None:
        """Adds rows after the position `length`; None when the log is no longer as long."""
        if not rows:
            return []
        new = secrets.token_hex(8)
        arguments: list[Any] = [self._born or "", length, new, self._ttl, int(self._source is not None)]
        for row in rows:
            arguments += (row.uid, repr(row.at), row.record, int(row.kind == "marked"), _packed(row))
        first, *places = self._append(self._keys, arguments)
        if first == b"moved":
            return None
        self._born = self._born or new
        return [row._replace(position=place) for row, place in zip(rows, places, strict=True) if place]

    def _placed(self, rows: Sequence[ChangeRow]) -> list[ChangeRow]:
        """The rows with their positions, if they are there: all of them or none."""
        places = self._client.hmget(self._keys[2], [row.uid for row in rows])
        return [row._replace(position=int(place)) for row, place in zip(rows, places, strict=True) if place is not None]

    def _tail(self, n: int) -> Tail:
        _, length, found = self._read(self._keys, [-n, -1])
        if length == 0 and self._source is not None and self._refilled():
            _, length, found = self._read(self._keys, [-n, -1])
        rows = [_unpacked(length - len(found) + i, packed) for i, packed in enumerate(found, 1)]
        ids = sorted({row.record for row in rows if row.record})
        firsts = self._client.hmget(self._keys[3], ids) if ids else []
        newest, mixed, marks = self._client.hmget(self._keys[1], ["newest", "mixed", "marks"])
        places = [int(place) for place in (marks or b"").split()]
        with self._client.pipeline(transaction=False) as pipe:
            for place in places:
                pipe.lindex(self._keys[0], place - 1)
            marked = pipe.execute()
        return Tail(
            length,
            rows,
            {id: int(first) for id, first in zip(ids, firsts, strict=True) if first is not None},
            [_unpacked(place, packed) for place, packed in zip(places, marked, strict=True) if packed is not None],
            float(newest or 0.0),
            mixed is not None,
        )

    def _again(self, work: Callable[[], T]) -> T:
        return reached(work, self.where, self._patience)


def reached(work: Callable[[], T], where: str, seconds: float) -> T:
    """The result of the work, with the errors of Redis typed; patiently."""

    def typed(again: bool) -> T:
        with _reporting(where):
            return work()

    return patiently(typed, seconds)


@contextmanager
def _reporting(where: str) -> Iterator[None]:
    try:
        yield
    except redis.exceptions.AuthenticationError as error:
        raise StoreError(f"{where}: {error}; check the user and the password") from error
    except PASSING as error:
        raise Interrupted(f"{where}: {error}", unknown=True) from error  # how far it got is never known
    except redis.RedisError as error:
        raise StoreError(f"{where}: {error}; nothing was written") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{where}: {error}; no such value can be stored or found") from error


PASSING = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.BusyLoadingError,
    redis.exceptions.ReadOnlyError,  # a replica, after a failover
)
"""Errors that another try may not meet."""


def connected(address: Address) -> redis.Redis:
    """A client, which connects when it is first used; threads may share it."""
    return redis.Redis.from_url(address.url, socket_timeout=ANSWER, socket_connect_timeout=5.0)


def namespaces(client: redis.Redis, address: Address) -> list[str]:
    """The namespaces that have changes on a server."""
    found = reached(lambda: list(client.scan_iter("clew:{*}:changes", 1_000)), address.shown, address.patience)
    return sorted(key.decode().removeprefix("clew:{").removesuffix("}:changes") for key in found)


def _packed(row: ChangeRow) -> bytes:
    return msgspec.msgpack.encode(row[1:])


_ROW = msgspec.msgpack.Decoder(tuple[str, float, str, str, str, str, bytes])


def _unpacked(position: int, packed: bytes) -> ChangeRow:
    try:
        return ChangeRow(position, *_ROW.decode(packed))
    except msgspec.MsgspecError as error:
        raise StoreError(f"change {position} in Redis is damaged: {error}") from error
