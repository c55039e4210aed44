"""Create and migrate the tables, step by step. A released step is never changed, only followed by another.

To add one: a function at the end of STEPS, and a store of the version before it in `tests/store/old/`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from triage.base.errors import StoreError
from triage.store.sqlite import APPLICATION, SqliteConnections, is_network_file

if TYPE_CHECKING:
    from sqlite_utils import Database

VERSION = 12  # the number of STEPS, so that a current store needs no import of sqlite-utils


def schema_version(connection: sqlite3.Connection) -> int:
    """Return how many steps were applied to this file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connections: SqliteConnections) -> int:
    """Apply the missing steps in one transaction; return their number.

    Raises StoreError for a file of another program or of a newer version.
    """
    with connections.translate_errors():
        connection = connections.get()
        applied = _check_version(connections, connection)
        if applied == VERSION or not connections.writable:
            if applied < VERSION:
                hint = "make the file writable and run `triage db migrate`, or use a writable copy"
                raise StoreError(
                    "the store has an older version and is read-only", hint=hint, path=str(connections.path)
                )
            return 0
        if applied == 0:
            connection.execute(f"PRAGMA journal_mode = {'DELETE' if is_network_file(connections.path) else 'WAL'}")
    return apply_steps(connections, VERSION)


def apply_steps(connections: SqliteConnections, version: int) -> int:
    """Apply the missing steps up to a version in one transaction; return their number."""
    from sqlite_utils import Database

    connection = connections.get()
    with connections.write():  # another process may have migrated it meanwhile
        applied = _check_version(connections, connection)
        database = Database(connection, execute_plugins=False)
        for step in STEPS[applied:version]:
            step(database)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {version}")
    return version - applied


def _check_version(connections: SqliteConnections, connection: sqlite3.Connection) -> int:
    applied = schema_version(connection)
    path = str(connections.path)
    if applied > VERSION:
        hint = "use that version of triage, or name another file with --store"
        raise StoreError(
            f"the store was written by a newer triage (version {applied}, this one knows {VERSION})",
            hint=hint,
            path=path,
        )
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if application != APPLICATION and not (empty and applied == 0):
        raise StoreError("this is a database of another program", hint="name another file with --store", path=path)
    return applied


_KNOWLEDGE = """
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE job (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, world_size INTEGER, first_time REAL, last_time REAL,
    versions TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE incident (
    num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, job TEXT NOT NULL REFERENCES job (id),
    verdict TEXT NOT NULL CHECK (verdict IN ('known', 'unknown', 'clean')),
    title TEXT NOT NULL, signature TEXT, key TEXT, domain TEXT NOT NULL, severity TEXT NOT NULL, \
confidence REAL NOT NULL,
    ranks TEXT NOT NULL, hosts TEXT NOT NULL, device TEXT,
    at REAL NOT NULL, stored_at REAL NOT NULL, seen_at REAL NOT NULL, seen INTEGER NOT NULL,
    tool_version TEXT NOT NULL, catalog_version TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE INDEX incident_at ON incident (at, num);
CREATE INDEX incident_verdict ON incident (verdict, at);
CREATE INDEX incident_signature ON incident (signature, at);
CREATE INDEX incident_domain ON incident (domain, at);
CREATE INDEX incident_key ON incident (key, at);
CREATE INDEX incident_cause ON incident (signature, key, at);
CREATE INDEX incident_device ON incident (device) WHERE device IS NOT NULL;
CREATE INDEX incident_job ON incident (job);
CREATE TABLE attempt (
    incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, number INTEGER NOT NULL, first_time REAL, \
last_time REAL,
    PRIMARY KEY (incident, number)
) WITHOUT ROWID;
CREATE TABLE finding (
    incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, place INTEGER NOT NULL,
    list TEXT NOT NULL CHECK (list IN ('findings', 'unknown', 'root')), root INTEGER NOT NULL,
    signature TEXT, revision INTEGER, fingerprint TEXT, key TEXT,
    role TEXT NOT NULL, confidence REAL NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (incident, place)
) WITHOUT ROWID;
CREATE INDEX finding_signature ON finding (signature);
CREATE INDEX finding_key ON finding (key);
CREATE TABLE report (num INTEGER PRIMARY KEY REFERENCES incident (num) ON DELETE CASCADE, body BLOB NOT NULL);
CREATE TABLE blamed_rank (
    rank INTEGER NOT NULL, incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, PRIMARY KEY (rank, \
incident)
) WITHOUT ROWID;
CREATE INDEX blamed_rank_incident ON blamed_rank (incident);
CREATE TABLE host (
    name TEXT NOT NULL, incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, blamed INTEGER NOT NULL,
    PRIMARY KEY (name, incident)
) WITHOUT ROWID;
CREATE INDEX host_incident ON host (incident);
CREATE TABLE warning (
    incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, place INTEGER NOT NULL,
    code TEXT NOT NULL, source TEXT, message TEXT NOT NULL, PRIMARY KEY (incident, place)
) WITHOUT ROWID;
CREATE TABLE redacted (
    incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, kind TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (incident, kind)
) WITHOUT ROWID;
CREATE TABLE history (
    id INTEGER PRIMARY KEY, incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, at REAL NOT NULL, \
reason TEXT NOT NULL,
    old TEXT NOT NULL, new TEXT NOT NULL, old_catalog TEXT NOT NULL, new_catalog TEXT NOT NULL
);
CREATE INDEX history_incident ON history (incident);
CREATE TABLE feedback (
    id INTEGER PRIMARY KEY, incident INTEGER NOT NULL REFERENCES incident (num), at REAL NOT NULL, actor TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('agree', 'wrong')), because TEXT NOT NULL, signature TEXT, said TEXT
);
CREATE INDEX feedback_incident ON feedback (incident);
CREATE TABLE cluster (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, title TEXT NOT NULL, name TEXT, note TEXT NOT NULL DEFAULT '', \
signature TEXT,
    redirect TEXT REFERENCES cluster (id), created_at REAL NOT NULL
);
CREATE TABLE cluster_key (
    key TEXT PRIMARY KEY, version INTEGER NOT NULL, cluster TEXT NOT NULL REFERENCES cluster (id), guard TEXT NOT NULL,
    headline TEXT NOT NULL, anchored INTEGER NOT NULL, why TEXT NOT NULL, trail TEXT NOT NULL, created_at REAL NOT NULL,
    jobs INTEGER NOT NULL DEFAULT 0, ranks INTEGER NOT NULL DEFAULT 0, first_seen REAL, last_seen REAL, last_path TEXT
) WITHOUT ROWID;
CREATE INDEX cluster_key_cluster ON cluster_key (cluster);
CREATE INDEX cluster_key_guard ON cluster_key (guard);
CREATE TABLE exemplar (
    key TEXT NOT NULL REFERENCES cluster_key (key) ON DELETE CASCADE, place INTEGER NOT NULL, incident TEXT NOT NULL, \
facts TEXT NOT NULL,
    PRIMARY KEY (key, place)
) WITHOUT ROWID;
CREATE TABLE counter (
    key TEXT NOT NULL REFERENCES cluster_key (key) ON DELETE CASCADE, day INTEGER NOT NULL, incidents INTEGER NOT NULL,
    PRIMARY KEY (key, day)
) WITHOUT ROWID;
CREATE TABLE apart (
    one TEXT NOT NULL, other TEXT NOT NULL, why TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (one, other), \
CHECK (one < other)
) WITHOUT ROWID;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL, \
details TEXT NOT NULL,
    undo TEXT, undone_by INTEGER REFERENCES audit (id)
);
CREATE INDEX audit_subject ON audit (subject);
CREATE TABLE page (num INTEGER PRIMARY KEY, title TEXT NOT NULL, words TEXT NOT NULL, body TEXT NOT NULL)
"""

_WORK = """
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, once TEXT NOT NULL UNIQUE, \
payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'taken', 'sent', 'dead', 'dropped')), \
attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL, taken_until REAL, receipt TEXT, error TEXT
);
CREATE INDEX outbox_due ON outbox (state, next_at);
CREATE TABLE task (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    attempts INTEGER NOT NULL DEFAULT 0, most INTEGER NOT NULL DEFAULT 3, created_at REAL NOT NULL, started_at REAL, \
ended_at REAL,
    owner TEXT, beat_at REAL, cancel INTEGER NOT NULL DEFAULT 0, progress TEXT, result TEXT, error TEXT, \
actor TEXT NOT NULL DEFAULT ''
);
CREATE INDEX task_state ON task (state, created_at);
CREATE TABLE token (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, prefix TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL,
    created_at REAL NOT NULL, expires_at REAL, used_at REAL, revoked_at REAL
)
"""

_SERVICE = """
ALTER TABLE task ADD COLUMN due_at REAL NOT NULL DEFAULT 0;
CREATE INDEX task_beat ON task (state, beat_at);
CREATE TABLE upload (
    digest TEXT PRIMARY KEY, bytes INTEGER NOT NULL, created_at REAL NOT NULL, used_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX upload_used ON upload (used_at);
CREATE TABLE origin (
    incident INTEGER PRIMARY KEY REFERENCES incident (num) ON DELETE CASCADE, at REAL NOT NULL, actor TEXT NOT NULL, \
place TEXT NOT NULL
);
CREATE TABLE document (
    incident INTEGER NOT NULL REFERENCES incident (num) ON DELETE CASCADE, kind TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (incident, kind)
) WITHOUT ROWID;
CREATE TABLE secret (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE generation (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL);
INSERT INTO generation VALUES (1, 0)
"""
# A change of these tables makes cached answers old: caches only read the counter. The audit log covers all decisions
# and feedback, and everything that an ingest writes belongs to its incident.
_COUNTED = (("incident", "INSERT UPDATE DELETE"), ("audit", "INSERT"), ("cluster_key", "INSERT UPDATE"))


def _make(database: Database, script: str) -> None:
    for statement in script.split(";\n"):
        database.execute(statement)


def create_knowledge_tables(database: Database) -> None:
    """Create the tables of jobs, incidents, clusters, feedback, the audit log and the full-text index."""
    _make(database, _KNOWLEDGE)
    database.table("page").enable_fts(
        ["title", "words", "body"], create_triggers=True, tokenize="unicode61 remove_diacritics 2"
    )


def create_work_tables(database: Database) -> None:
    """Create the tables of the outbox, tasks and tokens."""
    _make(database, _WORK)


def add_service_tables(database: Database) -> None:
    """Add what the service needs: due times, uploads, origins, documents, secrets and a counter of changes."""
    _make(database, _SERVICE)
    for table, verbs in _COUNTED:
        for verb in verbs.split():
            database.execute(
                f"CREATE TRIGGER {table}_{verb.lower()}_counts AFTER {verb} ON {table} BEGIN UPDATE generation "
                "SET number = number + 1; END"
            )


def add_notification_tables(database: Database) -> None:
    """Create the tables of notifications."""
    from triage.store.notifications import create_tables

    create_tables(database)


def allow_inconclusive_verdicts(database: Database) -> None:
    """Let incidents have the verdict `inconclusive`: a wider CHECK, so that no row needs to be read or written.

    SQLite cannot alter a constraint; the text of the table is replaced (https://sqlite.org/lang_altertable.html, 7).
    """
    connection = database.conn
    before, after = "'unknown', 'clean'", "'unknown', 'inconclusive', 'clean'"
    version = int(connection.execute("PRAGMA schema_version").fetchone()[0])
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = 'incident'", (before, after)
    )
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.execute("PRAGMA writable_schema = OFF")


def add_cause_sums(database: Database) -> None:
    """Create the sums of incidents by cause."""
    from triage.store.cause_tables import SUMS

    SUMS.create(database)


def add_cause_work(database: Database) -> None:
    """Create the tables of the work on causes."""
    from triage.store.cause_work import create_tables

    create_tables(database)


def add_views(database: Database) -> None:
    """Create the tables of saved views, visits and subscriptions."""
    from triage.store.saved_views import create_tables

    create_tables(database)


def add_facts(database: Database) -> None:
    """Create the table of facts of jobs."""
    from triage.store.fact_tables import create_tables

    create_tables(database)


def add_seen_index(database: Database) -> None:
    """Let the time of the last ingest be found without reading all incidents."""
    database.execute("CREATE INDEX incident_seen ON incident (seen_at)")


def add_facet_sums(database: Database) -> None:
    """Create the counts of incidents by facet."""
    from triage.store.facet_tables import SUMS

    SUMS.create(database)


def add_blamed_index(database: Database) -> None:
    """Let the hosts of many incidents be counted without reading the rows of hosts."""
    database.execute("DROP INDEX host_incident")
    database.execute("CREATE INDEX host_incident ON host (incident, blamed)")  # the name is in it, as a key of the row


STEPS: tuple[Callable[[Database], None], ...] = (
    create_knowledge_tables,
    create_work_tables,
    add_service_tables,
    add_notification_tables,
    allow_inconclusive_verdicts,
    add_cause_sums,
    add_cause_work,
    add_views,
    add_facts,
    add_seen_index,
    add_facet_sums,
    add_blamed_index,
)
