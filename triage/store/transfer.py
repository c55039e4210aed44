"""Export a store to JSON Lines and import it into another: incidents, feedback and decisions, but no tokens or tasks.

One object per line with `type`: head, job, incident, cluster, key, exemplar, counter, apart, cause_work,
cause_comment, saved_view, subscription, feedback, history, audit, setting. A second import changes nothing, and
existing rows stay.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from triage.base.errors import InputError
from triage.evidence.redact import redact
from triage.store import codec
from triage.store.incidents import choose_id
from triage.store.interface import Connections, Cursor, TextSearch, Transaction

FORMAT = "triage.store/1"
# Tables whose rows are exported unchanged, each after the tables that it refers to.
_PLAIN = (
    *("setting", "job", "cluster", "cluster_key", "exemplar", "counter", "apart", "cause_work", "cause_comment"),
    *("saved_view", "subscription"),
)
_AFTER = ("feedback", "history")
_PARTS = ("attempt", "finding", "blamed_rank", "host", "fact", "warning", "redacted")
_HINT = "give a file that `triage db export` wrote, by this version or an older one"
_MINE = {"num", "incident"}
_BAD_LINE = (ValueError, KeyError, TypeError, AttributeError)


def export_lines(connections: Connections, lost: list[str] | None = None) -> Iterator[str]:
    """Yield the lines of a consistent export.

    The last line lists what cannot be read of a damaged store: after what is in `lost`, which grows.
    """
    lost = [] if lost is None else lost
    damage = connections.damage_errors
    unreadable: tuple[type[Exception], ...] = (*damage, zlib.error, ValueError)
    with connections.snapshot() as db:
        yield _line({"type": "head", "format": FORMAT})
        for table in _PLAIN:
            yield from _rows(db, f"SELECT * FROM {table}", table, lost, damage)
        for num, identifier in _numbers(db, lost, damage):
            try:
                yield _line(_incident(db, num))
            except unreadable as error:
                lost.append(f"incident {identifier}: {error}")
        for table in _AFTER:
            query = f"SELECT t.*, i.id AS of, i.job AS of_job FROM {table} t JOIN incident i ON i.num = t.incident"
            yield from _rows(db, f"{query} ORDER BY t.id", table, lost, damage)
        yield from _rows(db, "SELECT * FROM audit ORDER BY id", "audit", lost, damage)
        yield _line({"type": "end", "lost": lost})


def import_lines(connections: Connections, lines: Iterable[str], *, name: str = "the file") -> dict[str, int]:
    """Import what `export_lines` wrote, all or nothing; return how many rows of each type are new.

    Raises InputError for other files.
    """
    readers: dict[str, Callable[[Transaction, dict[str, Any]], int]] = {
        **_READERS,
        "incident": partial(_import_incident, connections.dialect.text),
    }
    bad_line: tuple[type[Exception], ...] = (*_BAD_LINE, *connections.bad_value_errors)
    added: dict[str, int] = {}
    redirects: list[tuple[str, str]] = []  # a merged cluster may stand before the one that it was merged into
    with connections.write() as db:
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                item = json.loads(text, object_hook=_clean)
                kind = item.pop("type")
                if number == 1 and (kind != "head" or item.get("format") != FORMAT):
                    raise ValueError(f"the first line is not a head of the format {FORMAT}")
                redirect = item.pop("redirect", None) if kind == "cluster" else None
                new = readers[kind](db, item) if kind in readers else 0
            except bad_line as error:
                message = f"this is not an export of a store: {error!r}"
                raise InputError(message, hint=_HINT, path=name, line=number) from None
            if new and redirect is not None:
                redirects.append((redirect, item["id"]))
            if new:
                added[kind] = added.get(kind, 0) + new
        try:
            db.executemany("UPDATE cluster SET redirect = ? WHERE id = ?", redirects)
        except connections.bad_value_errors:
            raise InputError("a merged cluster points to one that the export lacks", hint=_HINT, path=name) from None
    return added


def _line(item: dict[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=True) + "\n"


def _clean(item: dict[str, Any]) -> dict[str, Any]:
    """Redact an imported object."""
    return {
        key: value if key in ("id", "key", "job", "of_job", "digest") else _redact_texts_in(value)
        for key, value in item.items()
    }


def _redact_texts_in(value: Any) -> Any:
    """Redact a text, and the texts in a list; objects inside are redacted already."""
    if isinstance(value, list):
        return [_redact_texts_in(part) for part in value]
    return redact(value) if isinstance(value, str) else value


def _rows(db: Transaction, sql: str, kind: str, lost: list[str], damage: tuple[type[Exception], ...]) -> Iterator[str]:
    try:
        for row in db.execute(sql):
            yield _line({"type": kind, **dict(row)})
    except damage as error:
        lost.append(f"{kind}: {error}")


def _numbers(db: Transaction, lost: list[str], damage: tuple[type[Exception], ...]) -> list[tuple[int, str]]:
    try:
        return [(row["num"], row["id"]) for row in db.execute("SELECT num, id FROM incident ORDER BY num")]
    except damage as error:
        lost.append(f"the list of incidents: {error}")
        return []


def _incident(db: Transaction, num: int) -> dict[str, Any]:
    row = dict(db.execute("SELECT * FROM incident WHERE num = ?", (num,)).fetchone())
    report = db.execute("SELECT body FROM report WHERE num = ?", (num,)).fetchone()
    if report is None:
        raise ValueError("its report is missing")
    item: dict[str, Any] = {
        "type": "incident",
        **{name: value for name, value in row.items() if name not in _MINE},
        "body": codec.decode_document(report["body"]),
    }
    for part in _PARTS:
        rows = db.execute(f"SELECT * FROM {part} WHERE incident = ?", (num,))
        item[part] = [{name: value for name, value in dict(row).items() if name != "incident"} for row in rows]
    page = db.execute("SELECT title, words, body FROM page WHERE num = ?", (num,)).fetchone()
    item["page"] = dict(page) if page is not None else {"title": "", "words": "", "body": ""}
    return item


def _insert(db: Transaction, table: str, item: dict[str, Any], end: str = "") -> Cursor:
    _known_columns(db, table, item)
    return db.execute(
        f"INSERT INTO {table} ({', '.join(item)}) VALUES ({', '.join(':' + name for name in item)}) {end}", item
    )


def _known_columns(db: Transaction, table: str, item: Iterable[str]) -> None:
    """Raise ValueError for names that are not columns, since they become part of a statement."""
    unknown = set(item) - {column[0] for column in db.execute(f"SELECT * FROM {table} LIMIT 0").description}
    if unknown:
        raise ValueError(f"{table} has no column {sorted(unknown)[0]}")


def _plain(table: str) -> Callable[[Transaction, dict[str, Any]], int]:
    return lambda db, item: max(_insert(db, table, item, "ON CONFLICT DO NOTHING").rowcount, 0)


def _import_incident(text: TextSearch, db: Transaction, item: dict[str, Any]) -> int:
    if db.execute("SELECT 1 FROM incident WHERE job = ?", (item["job"],)).fetchone() is not None:
        return 0
    if db.execute("SELECT 1 FROM incident WHERE id = ?", (item["id"],)).fetchone() is not None:
        item["id"] = choose_id(db, item["job"])  # another job of this store has the same first digits
    parts = {
        part: item.pop(part, []) if part == "fact" else item.pop(part) for part in _PARTS
    }  # older exports have no facts
    page, body = item.pop("page"), item.pop("body")
    (num,) = _insert(db, "incident", item, "RETURNING num").fetchone()
    _insert(db, "report", {"num": num, "body": codec.encode_document(body)})
    for part, rows in parts.items():
        for row in rows:
            _insert(db, part, {**row, "incident": num})
    text.write_page(db, num, page["title"], page["words"], page["body"])
    return 1


def _import_related(table: str) -> Callable[[Transaction, dict[str, Any]], int]:
    def take(db: Transaction, item: dict[str, Any]) -> int:
        row = db.execute(
            "SELECT num FROM incident WHERE job = :of_job OR (:of_job IS NULL AND id = :of)",
            {"of": item.pop("of"), "of_job": item.pop("of_job", None)},  # exports of older versions have no of_job
        ).fetchone()
        item = {name: value for name, value in item.items() if name not in ("id", "incident")}
        if row is None:
            return 0
        _known_columns(db, table, item)
        same = " AND ".join(f"({name} = :{name} OR ({name} IS NULL AND :{name} IS NULL))" for name in item)
        if db.execute(
            f"SELECT 1 FROM {table} WHERE incident = :incident AND {same}", {**item, "incident": row["num"]}
        ).fetchone():
            return 0
        _insert(db, table, {**item, "incident": row["num"]})
        return 1

    return take


def _import_audit(db: Transaction, item: dict[str, Any]) -> int:
    """Import an audit entry without its undo state: actions of another store cannot be undone here."""
    item = {name: item[name] for name in ("at", "actor", "action", "subject", "details")}
    if db.execute(
        "SELECT 1 FROM audit WHERE at = :at AND actor = :actor AND action = :action AND subject = :subject", item
    ).fetchone():
        return 0
    _insert(db, "audit", item)
    return 1


_READERS: dict[str, Callable[[Transaction, dict[str, Any]], int]] = {
    **{table: _plain(table) for table in _PLAIN},
    **{table: _import_related(table) for table in _AFTER},
    "audit": _import_audit,
}
