"""Out of a store and into another, as JSON Lines: incidents whole, what people said and decided, never tokens, tasks
and posts.

One object a line with `type`: head, job, incident, cluster, key, exemplar, counter, apart, feedback, history, audit,
setting. Importing
twice changes nothing; what the store has already stays.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from triage.base.errors import InputError
from triage.evidence.redact import redact
from triage.store import codec
from triage.store.connection import Connections

FORMAT = "triage.store/1"
# Tables whose rows go as they are, in an order in which references come after what they refer to.
_PLAIN = ("setting", "job", "cluster", "cluster_key", "exemplar", "counter", "apart")
_AFTER = ("feedback", "history")
_PARTS = ("attempt", "finding", "blamed_rank", "host", "warning", "redacted")
_MINE = {"num", "incident"}


def export(connections: Connections) -> Iterator[str]:
    """The lines, as the store is when it begins. What cannot be read of a damaged store is left out and said in the
    last line.
    """
    lost: list[str] = []
    db = connections.get()
    with connections.told():
        db.execute("BEGIN")
    try:
        yield _line({"type": "head", "format": FORMAT})
        for table in _PLAIN:
            yield from _rows(db, f"SELECT * FROM {table}", table, lost)
        for num, identifier in _numbers(db, lost):
            try:
                yield _line(_incident(db, num))
            except (sqlite3.DatabaseError, ValueError) as error:
                lost.append(f"incident {identifier}: {error}")
        for table in _AFTER:
            yield from _rows(
                db,
                f"SELECT t.*, i.id AS of FROM {table} t JOIN incident i ON i.num = t.incident ORDER BY t.id",
                table,
                lost,
            )
        yield from _rows(db, "SELECT * FROM audit ORDER BY id", "audit", lost)
        yield _line({"type": "end", "lost": lost})
    finally:
        db.execute("ROLLBACK")


def load(connections: Connections, lines: Iterable[str], *, name: str = "the file") -> dict[str, int]:
    """Take in what `export` wrote, all or nothing; how many rows of each type were new. Raises InputError for anything
    else.
    """
    added: dict[str, int] = {}
    with connections.write() as db:
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                item = json.loads(text, object_hook=_clean)
                kind = item.pop("type")
                if number == 1 and (kind != "head" or item.get("format") != FORMAT):
                    raise ValueError(f"it does not begin with a head of the format {FORMAT}")
                new = _READERS[kind](db, item) if kind in _READERS else 0
            except (
                ValueError,
                KeyError,
                TypeError,
                AttributeError,
                sqlite3.IntegrityError,
                sqlite3.OperationalError,
            ) as error:
                hint = "give a file that `triage db export` wrote, of this version or an older one"
                raise InputError(
                    f"this is no export of a store: {error!r}", hint=hint, path=name, line=number
                ) from None
            if new:
                added[kind] = added.get(kind, 0) + new
    return added


def _line(item: dict[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=True) + "\n"


def _clean(item: dict[str, Any]) -> dict[str, Any]:
    """What comes from elsewhere passes the redaction too."""
    return {
        key: redact(value) if isinstance(value, str) and key not in ("id", "key", "job", "digest", "body") else value
        for key, value in item.items()
    }


def _rows(db: sqlite3.Connection, sql: str, kind: str, lost: list[str]) -> Iterator[str]:
    try:
        for row in db.execute(sql):
            yield _line({"type": kind, **dict(row)})
    except sqlite3.DatabaseError as error:
        lost.append(f"{kind}: {error}")


def _numbers(db: sqlite3.Connection, lost: list[str]) -> list[tuple[int, str]]:
    try:
        return [(row["num"], row["id"]) for row in db.execute("SELECT num, id FROM incident ORDER BY num")]
    except sqlite3.DatabaseError as error:
        lost.append(f"the list of incidents: {error}")
        return []


def _incident(db: sqlite3.Connection, num: int) -> dict[str, Any]:
    row = dict(db.execute("SELECT * FROM incident WHERE num = ?", (num,)).fetchone())
    body = db.execute("SELECT body FROM report WHERE num = ?", (num,)).fetchone()["body"]
    item: dict[str, Any] = {
        "type": "incident",
        **{name: value for name, value in row.items() if name not in _MINE},
        "body": codec.unbody(body),
    }
    for part in _PARTS:
        rows = db.execute(f"SELECT * FROM {part} WHERE incident = ?", (num,))
        item[part] = [{name: value for name, value in dict(found).items() if name != "incident"} for found in rows]
    page = db.execute("SELECT title, words, body FROM page WHERE num = ?", (num,)).fetchone()
    item["page"] = dict(page) if page is not None else {"title": "", "words": "", "body": ""}
    return item


def _insert(db: sqlite3.Connection, table: str, item: dict[str, Any], *, ignore: bool = False) -> sqlite3.Cursor:
    _known_columns(db, table, item)
    verb = "INSERT OR IGNORE" if ignore else "INSERT"
    return db.execute(
        f"{verb} INTO {table} ({', '.join(item)}) VALUES ({', '.join(':' + name for name in item)})", item
    )


def _known_columns(db: sqlite3.Connection, table: str, item: Iterable[str]) -> None:
    """Names from a file become a part of a statement: only those of the table may."""
    unknown = set(item) - {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}
    if unknown:
        raise ValueError(f"{table} has no {sorted(unknown)[0]}")


def _plain(table: str) -> Callable[[sqlite3.Connection, dict[str, Any]], int]:
    return lambda db, item: max(_insert(db, table, item, ignore=True).rowcount, 0)


def _take_incident(db: sqlite3.Connection, item: dict[str, Any]) -> int:
    if db.execute("SELECT 1 FROM incident WHERE id = ?", (item["id"],)).fetchone() is not None:
        return 0
    parts = {part: item.pop(part) for part in _PARTS}
    page, body = item.pop("page"), item.pop("body")
    num = _insert(db, "incident", item).lastrowid
    _insert(db, "report", {"num": num, "body": codec.pack(body)})
    for part, rows in parts.items():
        for row in rows:
            _insert(db, part, {**row, "incident": num})
    _insert(db, "page", {**page, "num": num})
    return 1


def _take_said(table: str) -> Callable[[sqlite3.Connection, dict[str, Any]], int]:
    def take(db: sqlite3.Connection, item: dict[str, Any]) -> int:
        row = db.execute("SELECT num FROM incident WHERE id = ?", (item.pop("of"),)).fetchone()
        item = {name: value for name, value in item.items() if name not in ("id", "incident")}
        if row is None:
            return 0
        _known_columns(db, table, item)
        same = " AND ".join(f"{name} IS :{name}" for name in item)
        if db.execute(
            f"SELECT 1 FROM {table} WHERE incident = :incident AND {same}", {**item, "incident": row["num"]}
        ).fetchone():
            return 0
        _insert(db, table, {**item, "incident": row["num"]})
        return 1

    return take


def _take_audit(db: sqlite3.Connection, item: dict[str, Any]) -> int:
    """As history: moves of another store cannot be taken back here."""
    item = {name: item[name] for name in ("at", "actor", "action", "subject", "details")}
    if db.execute(
        "SELECT 1 FROM audit WHERE at = :at AND actor = :actor AND action = :action AND subject = :subject", item
    ).fetchone():
        return 0
    _insert(db, "audit", item)
    return 1


_READERS: dict[str, Callable[[sqlite3.Connection, dict[str, Any]], int]] = {
    **{table: _plain(table) for table in _PLAIN},
    "incident": _take_incident,
    **{table: _take_said(table) for table in _AFTER},
    "audit": _take_audit,
}
