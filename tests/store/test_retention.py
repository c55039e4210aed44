"""Retention: each rule deletes what is older than its days, from the ingest on, and nothing with feedback."""

from __future__ import annotations

from tests.store.factories import DAY, NOW, unknown_diagnosis
from tests.store.test_facts import with_facts
from triage.settings.retention_rules import list_rules
from triage.settings.sections import RetentionRule as RuleSetting, RetentionSettings
from triage.store import Store
from triage.store.retention import RetentionRule, apply_rules

RULES = [RetentionRule(10, ("team", "vision")), RetentionRule(30)]


def names(store: Store) -> list[str]:
    return sorted(incident.job_name for incident in store.search.list_incidents())


def fill(store: Store) -> None:
    """Store incidents of two teams on both sides of each limit."""
    for team, days in (("vision", 9), ("vision", 11), ("llm", 11), ("llm", 29), ("llm", 31)):
        store.incidents.add(with_facts(f"{team}-{days}", team=team), now=NOW - days * DAY)
    praised = store.incidents.add(with_facts("kept", team="vision"), now=NOW - 400 * DAY)
    store.feedback.add(praised.id, "agree", actor="anna")


def test_rules_by_age_and_fact(store: Store) -> None:
    """A rule for a fact replaces the general one; the audit log has how many incidents each rule deleted."""
    fill(store)
    assert apply_rules(store.connections, store.incidents, RULES, now=NOW) == [(RULES[0], 1), (RULES[1], 1)]
    assert names(store) == ["kept", "llm-11", "llm-29", "vision-9"]
    entries = [entry for entry in store.audit.list_entries() if entry.action == "retention"]
    assert [(entry.subject, entry.details) for entry in entries] == [
        ("others, 30 days", {"incidents": 1}),
        ("team=vision, 10 days", {"incidents": 1}),
    ]
    assert apply_rules(store.connections, store.incidents, RULES, now=NOW) == [(RULES[0], 0), (RULES[1], 0)]


def test_what_quotes_a_deleted_incident_goes_with_it(store: Store) -> None:
    """Examples of its cluster and notifications about it are deleted, those of younger incidents and counts stay."""
    ids = []
    for name, days in (("old", 31), ("young", 29)):
        ids.append(store.incidents.add(unknown_diagnosis(name), now=NOW - days * DAY).id)
        store.notifications.save(
            "slack", "#c", name, cause="c", job=name, hosts=["n"], incident=ids[-1], report=None, now=NOW
        )
    (cluster,) = store.clusters.list_clusters()
    apply_rules(store.connections, store.incidents, RULES, now=NOW)
    quoted = {table: store.connections.read(f"SELECT incident FROM {table}") for table in ("exemplar", "told")}
    assert {table: {row["incident"] for row in rows} for table, rows in quoted.items()} == {
        "exemplar": {ids[1]},
        "told": {ids[1]},
    }
    assert store.clusters.get(cluster.id).jobs == 2


def test_a_longer_rule_is_an_exception(store: Store) -> None:
    """An incident that a rule with more days names is not deleted by the general one."""
    fill(store)
    apply_rules(store.connections, store.incidents, [RetentionRule(100, ("team", "llm")), RetentionRule(10)], now=NOW)
    assert names(store) == ["kept", "llm-11", "llm-29", "llm-31", "vision-9"]


def test_a_dry_run_deletes_nothing(store: Store) -> None:
    """A dry run gives the counts of a run, and changes nothing."""
    fill(store)
    before = names(store)
    dry = apply_rules(store.connections, store.incidents, RULES, dry_run=True, now=NOW)
    assert names(store) == before
    assert [entry for entry in store.audit.list_entries() if entry.action == "retention"] == []
    assert apply_rules(store.connections, store.incidents, RULES, now=NOW) == dry


def test_the_settings_give_the_rules() -> None:
    """Without settings there is no rule; the general one comes last."""
    assert list_rules(RetentionSettings()) == []
    settings = RetentionSettings(days=30, rules=(RuleSetting(fact="team=vision", days=10),))
    assert list_rules(settings) == RULES
