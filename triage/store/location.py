"""Where the store is: `--store`, else TRIAGE_STORE, else the user's data directory.

It is a file of SQLite, or a database of PostgreSQL.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

FILE = "triage.db"
VARIABLE = "TRIAGE_STORE"
OFF = "off"
SCHEMES = ("postgresql://", "postgres://")
_FILE_SCHEME = "sqlite:"
# The options of an address that are shown; others may be secrets, or hold one by mistake.
_SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "target_session_attrs", "options")


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """The address of a PostgreSQL database. As text it has no password, so that messages and logs may show it."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return without_password(self.url)

    def exists(self) -> bool:
        """Return True: only the server knows, and says so when the store is opened."""
        return True


StoreLocation = Path | DatabaseUrl


def store_location(option: str | os.PathLike[str] | DatabaseUrl | None = None) -> StoreLocation | None:
    """Return the store's database or file; for a directory, `triage.db` in it.

    None when TRIAGE_STORE is `off` without an option. Without both it is `$XDG_DATA_HOME/triage/triage.db`, or
    `~/.local/share/triage/triage.db` where that is not set.
    """
    if isinstance(option, DatabaseUrl):
        return option
    name = os.fspath(option) if option is not None else os.environ.get(VARIABLE, "")
    if option is None and name.lower() == OFF:
        return None
    if name.startswith(SCHEMES):
        return DatabaseUrl(name)
    name = name.removeprefix(_FILE_SCHEME) if not os.path.exists(name) else name
    if name:
        path = Path(name).expanduser()
        return path / FILE if name.endswith("/") or path.is_dir() else path
    return data_directory() / FILE


def data_directory() -> Path:
    """Return the directory of what triage stores for this user."""
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path(os.path.expanduser("~")) / ".local" / "share"
    return base / "triage"


def without_password(name: str) -> str:
    """Return the name of a store without the password, if it has one."""
    scheme = next((scheme for scheme in SCHEMES if name.startswith(scheme)), None)
    if scheme is None:
        return name
    address, mark, options = name.removeprefix(scheme).partition("?")
    user, at, place = address.rpartition("@")
    others = [part for part in options.split("&") if part.partition("=")[0] in _SHOWN]
    user = user.partition(":")[0]
    return f"{scheme}{user}{at}{place}" + (mark + "&".join(others) if others and mark else "")
