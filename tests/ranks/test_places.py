"""triage.ranks.places"""

from __future__ import annotations

import pytest

from triage.ranks.places import UNKNOWN_HOST_OF, host_keys, is_address, short_host


@pytest.mark.parametrize(
    ("host", "short", "address"),
    [
        ("node1.cluster.local", "node1", False),
        ("node1", "node1", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("fe80::1", "fe80::1", True),
        ("7", "7", False),
        ("n.7", "n", False),
        ("", "", False),
    ],
)
def test_a_host_is_short_without_its_domain(host: str, short: str, address: bool) -> None:
    """An IP address has no domain."""
    assert (short_host(host), is_address(host)) == (short, address)


@pytest.mark.parametrize(
    ("source", "host", "keys"),
    [
        ("a.log", "node1.cluster", ("node1",)),
        ("a.log", None, (UNKNOWN_HOST_OF + "a.log",)),
        ("logs/none_k2j/attempt_0/1/stderr.log", None, ("logs/none_k2j/",)),
        ("logs/none_k2j/attempt_0/1/stderr.log", "node1", ("node1", "logs/none_k2j/")),
    ],
)
def test_what_stands_for_a_host(source: str, host: str | None, keys: tuple[str, ...]) -> None:
    """Its name and its run directory; the file only if neither is known."""
    assert host_keys(source, host) == keys
