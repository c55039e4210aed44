"""Make salvaged rows a consistent store: derive what reports prove, remove what refers to lost rows, and say so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from triage.model import Diagnosis
from triage.store import cause_tables, codec, facet_tables, fts_index, incidents
from triage.store.salvage.report import SalvageReport
from triage.store.sqlite_text import SqliteText

# Written from the diagnosis alone, which the report has, too.
DERIVED = ("job", "attempt", "finding", "blamed_rank", "host", "fact", "warning", "redacted", "page")
# Only the import of an audit entry drops this reference; the entry itself says what happened.
_NOT_REMOVED = ("audit",)
NAMED_INCIDENTS = 50


def complete_rows(db: sqlite3.Connection, report: SalvageReport) -> None:
    """Derive lost rows from reports where those have them, then remove rows that refer to lost rows."""
    _remove_strange_reports(db, report)
    for num, identifier, title in db.execute(
        "SELECT num, id, title FROM incident WHERE num NOT IN (SELECT num FROM report) ORDER BY num"
    ).fetchall():
        report.lost.append(f"incident {identifier} ({title}): its report is lost")
        db.execute("DELETE FROM incident WHERE num = ?", (num,))
    _derive_rows(db, report)
    db.execute("DELETE FROM job WHERE id NOT IN (SELECT job FROM incident)")
    for table, parent, count in _remove_dangling_rows(db):
        report.lost.append(f"table {table}: {count} readable rows belong to lost rows of the table {parent}")
    cause_tables.SUMS.fill(db)
    facet_tables.SUMS.fill(db)


def _remove_strange_reports(db: sqlite3.Connection, report: SalvageReport) -> None:
    """Remove reports that are not of their incident, and those whose incident is lost. Names their jobs."""
    named = 0
    for num, body, job, verdict in db.execute(
        "SELECT r.num, r.body, i.job, i.verdict FROM report r LEFT JOIN incident i ON i.num = r.num ORDER BY r.num"
    ).fetchall():
        document = codec.decode_document(body)
        if document["job"]["id"] == job and document["verdict"] == verdict:
            continue
        db.execute("DELETE FROM report WHERE num = ?", (num,))
        named += 1
        if named <= NAMED_INCIDENTS:
            name = document["job"]["name"] or document["job"]["id"]
            report.lost.append(f"the incident of the job {name} ({document['job']['path']}): ingest it again")
    if named > NAMED_INCIDENTS:
        report.lost.append(f"{named - NAMED_INCIDENTS} more incidents whose reports can be read")


def _derive_rows(db: sqlite3.Connection, report: SalvageReport) -> None:
    """Write again what the diagnoses of all incidents say. Rows that were read stay, but incidents are corrected."""
    with closing(_connect_with_tables(db)) as scratch:
        for num, identifier, diagnosis in _stored_diagnoses(db):
            _correct_incident(db, num, identifier, diagnosis, report)
            key = db.execute("SELECT key FROM incident WHERE num = ?", (num,)).fetchone()[0]
            incidents.write_parts(scratch, num, diagnosis, key)
            _add_missing_rows(db, scratch)
            keys = db.execute("SELECT key FROM finding WHERE incident = ? AND key NOTNULL ORDER BY place", (num,))
            page = fts_index.page_of(identifier, diagnosis, [row[0] for row in keys])
            SqliteText().write_page(scratch, num, *page)
            _add_missing_rows(db, scratch)


def _connect_with_tables(db: sqlite3.Connection) -> sqlite3.Connection:
    """Return a database in memory with the derived tables, empty."""
    scratch = sqlite3.connect(":memory:", isolation_level=None)
    scratch.row_factory = sqlite3.Row
    marks = ", ".join("?" * len(DERIVED))
    for (sql,) in db.execute(f"SELECT sql FROM sqlite_master WHERE type = 'table' AND name IN ({marks})", DERIVED):
        scratch.execute(sql)
    return scratch


def _add_missing_rows(db: sqlite3.Connection, scratch: sqlite3.Connection) -> None:
    """Move the rows of a scratch database; those that are there already stay."""
    for table in DERIVED:
        for row in scratch.execute(f"DELETE FROM {table} RETURNING *").fetchall():
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(row.keys())}) VALUES ({marks})", tuple(row))


def _correct_incident(
    db: sqlite3.Connection, num: int, identifier: str, diagnosis: Diagnosis, report: SalvageReport
) -> None:
    """Give an incident the values of its report, which has a checksum, where they differ."""
    row = db.execute("SELECT * FROM incident WHERE num = ?", (num,)).fetchone()
    values = incidents.incident_values(diagnosis)
    wrong = [name for name, value in values.items() if row[name] != value]
    if wrong:
        db.execute(
            f"UPDATE incident SET {', '.join(f'{name} = :{name}' for name in values)} WHERE num = :num",
            {**values, "num": num},
        )
        report.lost.append(f"incident {identifier}: {', '.join(wrong)} differed from its report and were corrected")


def _stored_diagnoses(db: sqlite3.Connection) -> Iterator[tuple[int, str, Diagnosis]]:
    query = "SELECT i.num, i.id, r.body FROM incident i JOIN report r ON r.num = i.num ORDER BY i.num"
    for num, identifier, body in db.execute(query).fetchall():
        yield num, identifier, codec.decode_diagnosis(body, {})


def _remove_dangling_rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, int]]:
    """Remove rows that refer to missing rows, until there are none; yield (table, missing table, count)."""
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage")]
    is_changed = True
    while is_changed:
        is_changed = False
        for table in tables:
            if table in _NOT_REMOVED:
                continue
            for row in db.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                parent, column, key = row[2], row[3], row[4]
                count = db.execute(
                    f"DELETE FROM {table} WHERE {column} NOTNULL AND {column} NOT IN (SELECT {key} FROM {parent})"
                ).rowcount
                if count:
                    is_changed = True
                    yield table, parent, count
