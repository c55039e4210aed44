"""A server of PostgreSQL for tests: from the system's programs, on a socket in a directory of its own."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from triage.store import Store

ADMIN = "triage"
_CONFIGURATION = """
fsync = off
full_page_writes = off
listen_addresses = ''
shared_buffers = 32MB
max_connections = 60
autovacuum = off
"""
_ACCESS = "local all with_password scram-sha-256\nlocal all all trust\n"


def find_programs() -> Path | None:
    """Return the directory of the newest installed server; None where there is none."""
    servers = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda name: int(name.split("/")[4]))
    name = servers[-1] if servers else shutil.which("initdb")
    return Path(os.path.realpath(name)).parent if name else None


def _owner() -> str | None:
    """Return the user to run the server as: root may not."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class PostgresServer:
    """A running server. `template` is a database with an empty store, which new databases are copies of."""

    template = "empty_store"

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._owner = _owner()
        self.directory = Path(tempfile.mkdtemp(prefix="triage-pg-"))
        self._data = self.directory / "data"
        if self._owner is not None:
            shutil.chown(self.directory, self._owner)
        self._count = 0
        self._run("initdb", "-D", self._data, "-U", ADMIN, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(_CONFIGURATION)
        (self._data / "pg_hba.conf").write_text(_ACCESS)
        self.start()
        self.execute(f"CREATE DATABASE {self.template}")
        Store.open(self.url(self.template)).close()

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        done = subprocess.run(command, user=self._owner, cwd=self.directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self.directory / "log", "-o", f"-k {self.directory}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is like a crash."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    def url(self, database: str, user: str = ADMIN, more: str = "") -> str:
        """Return the address of a database."""
        return f"postgresql://{user}@/{database}?host={self.directory}{more}"

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute a statement as the administrator; return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def create_database(self) -> str:
        """Return the address of a new database with an empty store."""
        return self.copy_database(self.url(self.template))

    def copy_database(self, address: str) -> str:
        """Return the address of a copy of a database that nobody is connected to."""
        self._count += 1
        self.execute(f"CREATE DATABASE store{self._count} TEMPLATE {urlsplit(address).path[1:]}")
        return self.url(f"store{self._count}")

    def close(self) -> None:
        """Stop the server and begin to delete its directory: the many files of its databases take half a minute."""
        pid = self._data / "postmaster.pid"
        if pid.exists():
            os.kill(int(pid.read_text().split()[0]), signal.SIGQUIT)
        subprocess.run(["sh", "-c", 'rm -rf "$0" >&- 2>&- &', self.directory], check=True)
