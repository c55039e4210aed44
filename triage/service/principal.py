"""Who asks, and what they may do: four roles, each holding the scopes of those before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

Role = Literal["viewer", "submitter", "curator", "admin"]
Scope = Literal["read", "ingest", "curate", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[Scope, ...] = get_args(Scope)
How = Literal["local", "token", "session", "proxy"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody signed in. `name` is what the audit log says; `key` tells clients apart for the limits; `how` they came
    in.
    """

    name: str
    role: Role
    scopes: frozenset[Scope]
    how: How
    key: str = field(default="")

    def may(self, role: Role) -> bool:
        """Has this role, or a higher one?"""
        return SCOPES[ROLES.index(role)] in self.scopes


def scopes_of(role: Role) -> frozenset[Scope]:
    """What a role may do."""
    return frozenset(SCOPES[: ROLES.index(role) + 1])


def role_of(scopes: Iterable[str]) -> Role:
    """The highest role of which all scopes are there; `viewer` where there is none."""
    have = set(scopes)
    best: Role = "viewer"
    for role, scope in zip(ROLES, SCOPES, strict=True):
        if scope not in have:
            break
        best = role
    return best


LOCAL = Principal("local", "admin", scopes_of("admin"), "local", "local")
