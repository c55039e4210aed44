"""Slurm's lists of hosts and tasks."""

from __future__ import annotations

import pytest

from triage.base.host_lists import expand_hosts, expand_numbers


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node7", ["node7"]),
        ("node[2-4,8],login1", ["login1", "node2", "node3", "node4", "node8"]),
        ("node[08-10]", ["node08", "node09", "node10"]),
        ("rack[1-2]n[1-2]", ["rack1n1", "rack1n2", "rack2n1", "rack2n2"]),
        ("node[2-4", []),
        ("", []),
    ],
)
def test_host_lists_expand(text: str, hosts: list[str]) -> None:
    """Ranges, zero padding and several brackets expand; a list that was cut gives nothing."""
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,7", [0, 1, 2, 3, 7]), ("5", [5]), ("0-", []), ("3-1", []), ("1-0-03-03-0", []), ("x", []), ("", [])],
)
def test_task_lists_expand(text: str, numbers: list[int]) -> None:
    """Ranges of task numbers expand; a malformed list gives nothing."""
    assert expand_numbers(text) == numbers


def test_the_size_of_a_list_is_limited() -> None:
    """65,536 entries expand, more give nothing, however the list multiplies."""
    assert len(expand_numbers("0-65535")) == 65536
    assert expand_numbers("0-65536") == []
    assert expand_hosts("n[0-65536]") == []
    assert expand_hosts("r[0-9999]n[0-9999]") == []
    assert expand_numbers("0-99999999999999999999999") == []
    assert len(expand_hosts("r[0-99]n[0-99]")) == 10_000
