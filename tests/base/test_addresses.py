"""Addresses: what is one, and what of it may be shown."""

from __future__ import annotations

import pytest

from triage.base.addresses import common_path, displayed_address, has_secret, is_address, scheme_of


@pytest.mark.parametrize(
    ("path", "scheme", "readable"),
    [
        ("s3://bucket/job/", "s3", True),
        ("S3://bucket/job/", "s3", True),
        ("ftp://host/x", "ftp", False),
        ("job/logs", "", False),
        ("./s3:/x", "", False),
        ("a b://c", "", False),
    ],
)
def test_schemes(path: str, scheme: str, readable: bool) -> None:
    """Only known schemes are read; a path without one is a path."""
    assert (scheme_of(path), is_address(path)) == (scheme, readable)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://bucket/job/rank 0.log", "s3://bucket/job/rank 0.log"),
        ("s3://bucket/what?.log", "s3://bucket/what?.log"),
        ("https://me:pw@host/a/b.log", "https://host/a/b.log"),
        ("https://token@host/a", "https://host/a"),
        ("https://host/a?X-Amz-Signature=ab&x=y#z", "https://host/a"),
        ("https://host?sig=ab", "https://host"),
        ("ssh://me:pw@host:22/logs", "ssh://me@host:22/logs"),
        ("ssh://me:p@w@host/logs", "ssh://me@host/logs"),
        ("abfs://container@account.dfs.core.windows.net/x", "abfs://container@account.dfs.core.windows.net/x"),
        ("abfs://container@account/x?sig=ab", "abfs://container@account/x"),
        ("/a/path?x=y", "/a/path?x=y"),
    ],
)
def test_what_is_shown(address: str, shown: str) -> None:
    """Passwords, tokens and signatures are not; what names the place is."""
    assert displayed_address(address) == shown
    assert has_secret(address) is (address != shown)


@pytest.mark.parametrize(
    ("paths", "common"),
    [
        (["s3://b/x/1", "s3://b/x/2"], "s3://b/x"),
        (["s3://b/x/", "s3://b/x/2"], "s3://b/x"),
        (["s3://a/x", "s3://b/x"], "s3://"),
        (["s3://a/x", "/b/x"], ""),
        (["/a/x", "/a/y"], "/a"),
        (["/"], "/"),
    ],
)
def test_common_paths(paths: list[str], common: str) -> None:
    """Addresses keep their scheme; an address and a path share nothing."""
    assert common_path(paths) == common
