"""Which incidents a person sees, by the rules of `[visibility]`.

Who sees a part of them has at most the role `submitter`: curators change the names, merges and states that all see.
"""

from __future__ import annotations

import dataclasses
import hashlib

from triage.service.access import Facts, Principal, highest_role, scopes_of
from triage.settings.sections import Role, VisibilitySettings

ALL = "*"
HIGHEST: Role = "submitter"  # the role of those who see a part


def rules_digest(settings: VisibilitySettings) -> str:
    """Return what changes with the rules; empty without any. A session belongs to the rules at its beginning."""
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:16] if settings.has_rules() else ""


def restrict(settings: VisibilitySettings, user: Principal, *, is_token: bool) -> Principal:
    """Return the person with the facts of the incidents that they see, and without roles that need all of them.

    `is_token`: they signed in with a token, whose name is not that of a person.
    """
    if not settings.has_rules():
        return user
    sees = visible_facts(settings, user, is_token=is_token)
    if sees is None:
        return user
    scopes = user.scopes & scopes_of(HIGHEST)
    return dataclasses.replace(user, role=highest_role(scopes), scopes=scopes, sees=sees)


def visible_facts(settings: VisibilitySettings, user: Principal, *, is_token: bool) -> Facts | None:
    """Return the facts of all rules for a person; None if one of them is for all incidents."""
    names = settings.tokens if is_token else settings.users
    rules = [
        *([names[user.name]] if user.name in names else []),
        *(settings.groups[group] for group in user.groups if group in settings.groups),
        *([settings.roles[user.role]] if user.role in settings.roles else []),
    ]
    texts = {text for rule in rules or [settings.others] for text in rule}
    if ALL in texts:
        return None
    return tuple(sorted((name, value) for name, _, value in (text.partition("=") for text in texts)))
