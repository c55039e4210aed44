"""Tokens: kept as hashes, told from mistypes by themselves, dead when revoked or old."""

from __future__ import annotations

import pytest

from triage.base.errors import NotFoundError, OptionError
from triage.evidence.redact import redact
from triage.store import Store, tokens


def test_a_token_is_kept_as_a_hash(store: Store) -> None:
    """The file holds its first characters and nothing else of it; it is found by the whole."""
    secret, made = store.tokens.create("ci", ["read", "ingest"], actor="me")
    assert tokens.wellformed(secret)
    dump = "\n".join(store.connections.get().iterdump())
    assert secret not in dump
    assert secret[: tokens.SHOWN] in dump
    found = store.tokens.check(secret)
    assert found is not None
    assert (found.id, found.scopes) == (made.id, ("read", "ingest"))
    assert store.tokens.listed()[0].used_at is not None


@pytest.mark.parametrize(
    "change", [lambda s: s[:-1] + ("0" if s[-1] != "0" else "1"), lambda s: s.lower(), lambda s: "", lambda s: s + "0"]
)
def test_a_mistyped_token_is_none(store: Store, change: object) -> None:
    """The checksum tells it without the store."""
    secret, _ = store.tokens.create("ci", ["read"], actor="me")
    changed = change(secret)  # type: ignore[operator]
    assert not tokens.wellformed(changed)
    assert store.tokens.check(changed) is None


def test_old_and_revoked_tokens_open_nothing(store: Store) -> None:
    """From the second on in which it ends, and from its revocation on."""
    old, _ = store.tokens.create("old", ["read"], actor="me", expires_at=100.0)
    assert store.tokens.check(old, now=99.0) is not None
    assert store.tokens.check(old, now=100.0) is None
    gone, made = store.tokens.create("gone", ["read"], actor="me")
    store.tokens.revoke("gone", actor="me")
    assert store.tokens.check(gone) is None
    with pytest.raises(NotFoundError):
        store.tokens.revoke("gone", actor="me")
    assert [entry.action for entry in store.audit.listed()] == ["token revoke", "token create", "token create"]
    assert made.alive(0)


def test_names_and_scopes_are_checked(store: Store) -> None:
    """A name is one token's while that lives; a scope is one of four."""
    store.tokens.create("a", ["read"], actor="me")
    for name, scopes in (("a", ["read"]), ("b", ["write"]), ("b", []), ("  ", ["read"])):
        with pytest.raises(OptionError):
            store.tokens.create(name, scopes, actor="me")


def test_a_token_in_a_log_is_redacted(store: Store) -> None:
    """What opens the service never stands in a report."""
    secret, _ = store.tokens.create("a", ["read"], actor="me")
    assert secret not in redact(f"curl -H 'X: {secret}' https://triage")
