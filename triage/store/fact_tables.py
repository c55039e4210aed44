"""The table of facts: the user, project, image and versions of jobs, and their labels, for filters and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triage.store import codec

if TYPE_CHECKING:
    from sqlite_utils import Database

    from triage.model import Job
    from triage.store.interface import Transaction

_CREATE = """
CREATE TABLE fact (
    name TEXT NOT NULL, value TEXT NOT NULL, incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE,
    PRIMARY KEY (name, value, incident)
) WITHOUT ROWID;
CREATE INDEX fact_incident ON fact (incident);
INSERT INTO fact SELECT v.key, CAST(v.value AS TEXT), i.num FROM incident i JOIN job j ON j.id = i.job,
    json_each(j.versions) v
"""


def create_tables(database: Database) -> None:
    """Create the table, with the versions of stored jobs. PostgreSQL's is in `postgres/steps/0005.sql`."""
    for statement in _CREATE.split(";\n"):
        database.execute(statement)


def write_facts(db: Transaction, num: int, job: Job) -> None:
    """Write the facts and the versions of an incident's job."""
    pairs = dict.fromkeys(
        (codec.without_surrogates(name), codec.without_surrogates(text))
        for name, values in job.all_facts().items()
        for text in values
    )
    db.executemany("INSERT INTO fact (name, value, incident) VALUES (?, ?, ?)", [(*pair, num) for pair in pairs])
