"""Counts of incidents for the facets of a list, in tables that the database itself keeps current by triggers.

`incident_sum` counts by verdict, domain, signature and fingerprint together: every sum over some of these columns is a
sum of few rows. `facet_sum` counts all incidents by blamed host and by each fact. As the sums of causes, these tables
are never copied. `postgres/steps/0007.sql` has the same for PostgreSQL.
"""

from __future__ import annotations

from triage.store.sum_tables import SumTables

_NAMES = ("incident_sum", "facet_sum")
_CREATE = """
CREATE TABLE incident_sum (
    verdict TEXT NOT NULL, domain TEXT NOT NULL, signature TEXT, key TEXT, incidents INTEGER NOT NULL
);
CREATE UNIQUE INDEX incident_sum_of ON incident_sum (verdict, domain, coalesce(signature, ''), coalesce(key, ''));
CREATE TABLE facet_sum (
    name TEXT NOT NULL, value TEXT NOT NULL, incidents INTEGER NOT NULL, PRIMARY KEY (name, value)
) WITHOUT ROWID;
CREATE INDEX facet_sum_most ON facet_sum (name, incidents DESC, value)
"""
_OF = "(verdict, domain, coalesce(signature, ''), coalesce(key, ''))"
_OLD = "(OLD.verdict, OLD.domain, coalesce(OLD.signature, ''), coalesce(OLD.key, ''))"
_NEW = "(NEW.verdict, NEW.domain, coalesce(NEW.signature, ''), coalesce(NEW.key, ''))"
_ADD = (
    "INSERT INTO incident_sum VALUES (NEW.verdict, NEW.domain, NEW.signature, NEW.key, 1) "
    f"ON CONFLICT {_OF} DO UPDATE SET incidents = incidents + 1;"
)
_SUBTRACT = (
    f"UPDATE incident_sum SET incidents = incidents - 1 WHERE {_OF} = {_OLD}; "
    f"DELETE FROM incident_sum WHERE {_OF} = {_OLD} AND incidents < 1;"
)
_ADD_FACET = (
    "INSERT INTO facet_sum VALUES ({name}, {value}, 1) ON CONFLICT (name, value) DO UPDATE SET "
    "incidents = incidents + 1;"
)
_SUBTRACT_FACET = (
    "UPDATE facet_sum SET incidents = incidents - 1 WHERE name = {name} AND value = {value}; "
    "DELETE FROM facet_sum WHERE name = {name} AND value = {value} AND incidents < 1;"
)
_HOST = {"name": "'host'", "value": "{row}.name"}
_FACT = {"name": "'fact.' || {row}.name", "value": "{row}.value"}
_TRIGGERS = (
    ("incident_sum_add", "INSERT ON incident", "TRUE", _ADD),
    ("incident_sum_subtract", "DELETE ON incident", "TRUE", _SUBTRACT),
    ("incident_sum_change", "UPDATE ON incident", f"{_OLD} <> {_NEW}", _ADD + _SUBTRACT),
    ("facet_add_host", "INSERT ON host", "NEW.blamed = 1", _ADD_FACET.format(**_HOST).format(row="NEW")),
    ("facet_subtract_host", "DELETE ON host", "OLD.blamed = 1", _SUBTRACT_FACET.format(**_HOST).format(row="OLD")),
    ("facet_add_fact", "INSERT ON fact", "TRUE", _ADD_FACET.format(**_FACT).format(row="NEW")),
    ("facet_subtract_fact", "DELETE ON fact", "TRUE", _SUBTRACT_FACET.format(**_FACT).format(row="OLD")),
)
_FILL = (
    "INSERT INTO incident_sum SELECT verdict, domain, signature, key, count(*) FROM incident GROUP BY 1, 2, 3, 4",
    "INSERT INTO facet_sum SELECT 'host', name, count(*) FROM host WHERE blamed = 1 GROUP BY name",
    "INSERT INTO facet_sum SELECT 'fact.' || name, value, count(*) FROM fact GROUP BY name, value",
)
SUMS = SumTables(_NAMES, _CREATE, _TRIGGERS, _FILL)
