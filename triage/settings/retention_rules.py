"""The rules of `[retention]` as the store applies them."""

from __future__ import annotations

from triage.settings.sections import RetentionSettings
from triage.store.retention import RetentionRule


def list_rules(settings: RetentionSettings) -> list[RetentionRule]:
    """Return the rules of the settings; none means that everything stays."""
    rules = []
    for item in settings.rules:
        name, _, value = item.fact.partition("=")
        rules.append(RetentionRule(item.days, (name, value)))
    return [*rules, *([RetentionRule(settings.days)] if settings.days else [])]
