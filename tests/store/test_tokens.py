"""triage.store.tokens: stored as hashes, checked offline, invalid when revoked or expired."""

from __future__ import annotations

import pytest

from tests.store.factories import dump_tables
from triage.base.errors import NotFoundError, OptionError
from triage.evidence.redact import redact
from triage.store import Store, tokens


def test_a_token_is_stored_as_a_hash(store: Store) -> None:
    """The file has only its first characters; the whole token is recognized."""
    secret, made = store.tokens.create("ci", ["read", "ingest"], actor="me")
    assert tokens.is_well_formed(secret)
    dump = dump_tables(store)
    assert secret not in dump
    assert secret[: tokens.PREFIX_LENGTH] in dump
    verified = store.tokens.verify(secret)
    assert verified is not None
    assert (verified.id, verified.scopes) == (made.id, ("read", "ingest"))
    assert store.tokens.list_tokens()[0].used_at is not None


@pytest.mark.parametrize(
    "change", [lambda s: s[:-1] + ("0" if s[-1] != "0" else "1"), lambda s: s.lower(), lambda s: "", lambda s: s + "0"]
)
def test_a_mistyped_token_is_invalid(store: Store, change: object) -> None:
    """The checksum rejects it without the store."""
    secret, _ = store.tokens.create("ci", ["read"], actor="me")
    changed = change(secret)  # type: ignore[operator]
    assert not tokens.is_well_formed(changed)
    assert store.tokens.verify(changed) is None


def test_expired_and_revoked_tokens_are_invalid(store: Store) -> None:
    """A token is invalid from its expiry or revocation on."""
    old, _ = store.tokens.create("old", ["read"], actor="me", expires_at=100.0)
    assert store.tokens.verify(old, now=99.0) is not None
    assert store.tokens.verify(old, now=100.0) is None
    gone, made = store.tokens.create("gone", ["read"], actor="me")
    store.tokens.revoke("gone", actor="me")
    assert store.tokens.verify(gone) is None
    with pytest.raises(NotFoundError):
        store.tokens.revoke("gone", actor="me")
    assert [entry.action for entry in store.audit.list_entries()] == ["token revoke", "token create", "token create"]
    assert made.is_valid(0)


def test_names_and_scopes_are_checked(store: Store) -> None:
    """A name belongs to one valid token; scopes are from a fixed list."""
    store.tokens.create("a", ["read"], actor="me")
    for name, scopes in (("a", ["read"]), ("b", ["write"]), ("b", []), ("  ", ["read"])):
        with pytest.raises(OptionError):
            store.tokens.create(name, scopes, actor="me")


def test_a_token_in_a_log_is_redacted(store: Store) -> None:
    """A token in a log is never in a report."""
    secret, _ = store.tokens.create("a", ["read"], actor="me")
    assert secret not in redact(f"curl -H 'X: {secret}' https://triage")
