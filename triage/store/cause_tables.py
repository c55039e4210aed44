"""Sums of incidents by cause, in tables that the database itself keeps current by triggers.

The cause of an incident is its signature, else the fingerprint of its unknown failure: fingerprints move between
clusters, so the sums of a cluster are those of its fingerprints. Whoever writes an incident writes the sums: an ingest,
an import, a copy of the store, retention, or a node with an older version. So these tables are never copied.
`postgres/steps/0002.sql` has the same for PostgreSQL.
"""

from __future__ import annotations

from triage.store.sum_tables import SumTables

_NAMES = ("cause_part", "cause_day", "cause_sum")
CAUSE = "coalesce({row}.signature, {row}.key)"
_CREATE = """
ALTER TABLE incident ADD COLUMN has_time INTEGER NOT NULL DEFAULT 1;
UPDATE incident SET has_time = 0 WHERE at = stored_at OR at = seen_at;
CREATE INDEX incident_root ON incident (coalesce(signature, key), at);
CREATE TABLE cause_sum (
    cause TEXT PRIMARY KEY, incidents INTEGER NOT NULL, first_at REAL NOT NULL, last_at REAL NOT NULL,
    first_stored REAL NOT NULL, last_stored REAL NOT NULL, title TEXT NOT NULL, severity TEXT NOT NULL,
    domain TEXT NOT NULL, jobs INTEGER NOT NULL DEFAULT 0, hosts INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE cause_day (
    cause TEXT NOT NULL, day INTEGER NOT NULL, incidents INTEGER NOT NULL, PRIMARY KEY (cause, day)
) WITHOUT ROWID;
CREATE INDEX cause_day_day ON cause_day (day, cause, incidents);
CREATE TABLE cause_part (
    cause TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, incidents INTEGER NOT NULL,
    PRIMARY KEY (cause, kind, name)
) WITHOUT ROWID;
CREATE INDEX cause_part_name ON cause_part (kind, name);
CREATE INDEX cause_part_most ON cause_part (cause, kind, incidents DESC, name)
"""
# The same for one incident, the row of a trigger, and for all of them.
_SUM = (
    "INSERT INTO cause_sum (cause, incidents, first_at, last_at, first_stored, last_stored, title, domain, severity) "
    f"SELECT {CAUSE.format(row='NEW')}, 1, NEW.at, NEW.at, NEW.stored_at, NEW.stored_at, NEW.title, NEW.domain, "
    "NEW.severity WHERE TRUE ON CONFLICT (cause) DO UPDATE SET incidents = incidents + 1, "
    "first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at), "
    "first_stored = min(first_stored, excluded.first_stored), last_stored = max(last_stored, excluded.last_stored), "
    "title = excluded.title, domain = excluded.domain, severity = excluded.severity"
)
_DAY = (
    f"INSERT INTO cause_day SELECT {CAUSE.format(row='NEW')}, CAST(NEW.at / 86400 AS INTEGER), 1 WHERE TRUE "
    "ON CONFLICT (cause, day) DO UPDATE SET incidents = incidents + 1"
)
_PART = (
    f"INSERT INTO cause_part SELECT {CAUSE.format(row='NEW')}, kind, name, 1 FROM ({{parts}}) WHERE TRUE "
    "ON CONFLICT (cause, kind, name) DO UPDATE SET incidents = incidents + 1"
)
_PARTS = (
    "SELECT DISTINCT 'host' AS kind, value AS name FROM json_each({row}.hosts) "
    "UNION ALL SELECT 'job', name FROM job WHERE id = {row}.job"
)
_OLD = CAUSE.format(row="OLD")
_ADD = f"{_SUM}; {_DAY}; {_PART.format(parts=_PARTS.format(row='NEW'))};"
_SUBTRACT = (
    f"UPDATE cause_part SET incidents = incidents - 1 WHERE cause = {_OLD} AND (kind, name) IN "
    f"({_PARTS.format(row='OLD')}); DELETE FROM cause_part WHERE cause = {_OLD} AND incidents < 1 AND (kind, name) IN "
    f"({_PARTS.format(row='OLD')}); "
    f"UPDATE cause_day SET incidents = incidents - 1 WHERE cause = {_OLD} AND day = CAST(OLD.at / 86400 AS INTEGER); "
    f"DELETE FROM cause_day WHERE cause = {_OLD} AND day = CAST(OLD.at / 86400 AS INTEGER) AND incidents < 1; "
    f"DELETE FROM cause_sum WHERE cause = {_OLD} AND incidents = 1; "
    "UPDATE cause_sum SET incidents = incidents - 1, "
    "first_at = coalesce((SELECT min(i.at) FROM incident i WHERE coalesce(i.signature, i.key) = cause), first_at), "
    "last_at = coalesce((SELECT max(i.at) FROM incident i WHERE coalesce(i.signature, i.key) = cause), last_at) "
    f"WHERE cause = {_OLD};"
)
_MOVE_JOB = (
    "UPDATE cause_part SET incidents = incidents - 1 WHERE kind = 'job' AND name = OLD.name AND cause IN ({causes}); "
    "DELETE FROM cause_part WHERE kind = 'job' AND name = OLD.name AND incidents < 1 AND cause IN ({causes}); "
    "INSERT INTO cause_part SELECT cause, 'job', NEW.name, 1 FROM ({causes}) WHERE cause IS NOT NULL "
    "ON CONFLICT (cause, kind, name) DO UPDATE SET incidents = incidents + 1;"
).format(causes="SELECT coalesce(i.signature, i.key) AS cause FROM incident i WHERE i.job = NEW.id")
_CHANGED = f"({_OLD}, OLD.at, OLD.hosts, OLD.title) IS NOT ({CAUSE.format(row='NEW')}, NEW.at, NEW.hosts, NEW.title)"
_COUNT = "UPDATE cause_sum SET hosts = hosts + ({row}.kind = 'host') * {by}, jobs = jobs + ({row}.kind = 'job') * {by} "
_TRIGGERS = (
    ("cause_add", "INSERT ON incident", f"{CAUSE.format(row='NEW')} IS NOT NULL", _ADD),
    ("cause_subtract", "DELETE ON incident", f"{_OLD} IS NOT NULL", _SUBTRACT),
    ("cause_add_changed", "UPDATE ON incident", f"{CAUSE.format(row='NEW')} IS NOT NULL AND {_CHANGED}", _ADD),
    ("cause_subtract_changed", "UPDATE ON incident", f"{_OLD} IS NOT NULL AND {_CHANGED}", _SUBTRACT),
    ("cause_move_job", "UPDATE OF name ON job", "OLD.name IS NOT NEW.name", _MOVE_JOB),
    ("cause_count", "INSERT ON cause_part", "TRUE", _COUNT.format(row="NEW", by=1) + "WHERE cause = NEW.cause;"),
    ("cause_discount", "DELETE ON cause_part", "TRUE", _COUNT.format(row="OLD", by=-1) + "WHERE cause = OLD.cause;"),
)
_ROOT = "coalesce(i.signature, i.key)"
_FILL = (
    "INSERT INTO cause_sum (cause, incidents, first_at, last_at, first_stored, last_stored, title, domain, severity) "
    f"SELECT {_ROOT}, count(*), min(i.at), max(i.at), min(i.stored_at), max(i.stored_at), max(i.title), "
    f"max(i.domain), max(i.severity) FROM incident i WHERE {_ROOT} IS NOT NULL GROUP BY 1",
    f"INSERT INTO cause_day SELECT {_ROOT}, CAST(i.at / 86400 AS INTEGER), count(*) FROM incident i "
    f"WHERE {_ROOT} IS NOT NULL GROUP BY 1, 2",
    f"INSERT INTO cause_part SELECT {_ROOT}, 'job', j.name, count(*) FROM incident i JOIN job j ON j.id = i.job "
    f"WHERE {_ROOT} IS NOT NULL GROUP BY 1, 3",
    f"INSERT INTO cause_part SELECT {_ROOT}, 'host', h.value, count(DISTINCT i.num) FROM incident i, "
    f"json_each(i.hosts) h WHERE {_ROOT} IS NOT NULL GROUP BY 1, 3",
)
SUMS = SumTables(_NAMES, _CREATE, _TRIGGERS, _FILL)
