"""Who may write a session: the identity of a writer, and whether it still lives.

An owner is written `host:pid:start:random`. `host` includes, on Linux, the pid namespace: containers
may share a host name and a file, but not their pids. `start` tells a process from a later one with
the same pid (clock ticks since boot, from Linux's /proc; "-" elsewhere), `random` one writer from
another in the same process.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache

LEASE_SECONDS = 30.0
"""How long a writer that says nothing keeps a session. Every write renews it."""


def new_owner() -> str:
    """An identity for one writer in this process."""
    return f"{_host()}:{os.getpid()}:{_start(os.getpid()) or '-'}:{secrets.token_hex(4)}"


def gone(owner: str) -> bool:
    """True when the owner was a process of this machine that has ended; False when it cannot be told."""
    host, _, rest = owner.partition(":")
    pid, _, rest = rest.partition(":")
    start = rest.partition(":")[0]
    if host != _host() or not pid.isdigit():
        return False
    now = _start(int(pid))
    if now is not None:
        return start not in ("-", now)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


@cache
def _host() -> str:
    name = socket.gethostname().replace(":", "-")
    try:
        return f"{name}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return name


def _start(pid: int) -> str | None:
    """When a process began, or None when the system does not tell (or there is no such process)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] == b"Z" else fields[19].decode()
