"""Values and rows as SQLite has them, so that nothing above the connections notices which database it is.

A row has its values by name and by position. Truths are 0 and 1, sums of counts are int. PostgreSQL cannot store NUL
and lone surrogates in text: they become U+FFFD.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import Connection, Cursor, postgres
from psycopg.adapt import Dumper, Loader
from psycopg.types.string import StrDumperUnknown

REPLACEMENT = "\ufffd"


class PostgresRow:
    """A row, as sqlite3.Row is one."""

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: dict[str, int], values: Sequence[Any]) -> None:
        self._positions = positions
        self._values = tuple(values)

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._positions)

    def __getitem__(self, key: int | str) -> Any:
        return self._values[key if isinstance(key, int) else self._positions[key]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def make_row_maker(cursor: Cursor[Any]) -> Any:
    """Return the function that makes a row of the values of one; psycopg calls it once for each result."""
    positions = {column.name: number for number, column in enumerate(cursor.description or ())}
    return lambda values: PostgresRow(positions, values)


def storable_text(text: str) -> str:
    """Return the text as PostgreSQL can store it."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(storable_text(obj))


class _TruthDumper(Dumper):
    oid = postgres.types["int8"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class _NumberLoader(Loader):
    def load(self, data: Any) -> int | float:
        text = bytes(data).decode("ascii")
        return float(text) if "." in text else int(text)


class _TruthLoader(Loader):
    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


def adapt_values(connection: Connection[Any]) -> None:
    """Make a connection take and give values as SQLite does."""
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(bool, _TruthDumper)
    connection.adapters.register_loader("numeric", _NumberLoader)
    connection.adapters.register_loader("bool", _TruthLoader)
