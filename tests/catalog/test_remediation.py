"""triage.catalog.remediation"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from triage.catalog.lint import list_capture_names
from triage.catalog.model import Catalog, Leaf, Signature
from triage.catalog.remediation import PLACEHOLDERS, describe_advice, fill_remediation

MOST_SUBSETS = 6
VALUE = "value7"
# What a placeholder without a value leaves behind in a careless text.
DEBRIS = re.compile(
    r"[Rr]anks? \?|(?<!\w)\(\)|\( | \)|  | [,;:.](?: |$)|,\.|^[,;:.]|\bthe host:\w"
    r"|\b(?:of|process in) ?[.,;:)](?: |$)"
)


def advice(summary: str, *steps: str, pattern: str = "") -> Signature:
    """A signature with this advice."""
    leaf = Leaf(text=pattern or None)
    return Signature("a.b", 1, "title", "stable", "cause", "fatal", leaf, summary=summary, steps=steps)


def subsets(names: set[str]) -> Iterator[tuple[str, ...]]:
    """All subsets of a few names; of many those with up to two names, and all."""
    sizes = range(len(names) + 1) if len(names) <= MOST_SUBSETS else (0, 1, 2, len(names))
    for size in sizes:
        yield from itertools.combinations(sorted(names), size)


def used_names(signature: Signature) -> set[str]:
    """The placeholders in the advice of the signature."""
    placeholders = {name for text in (signature.summary, *signature.steps) for name in re.findall(r"\{(\w+)\}", text)}
    return placeholders & (list_capture_names(signature) | PLACEHOLDERS)


def test_no_placeholder_of_the_catalog_reaches_a_reader(catalog: Catalog) -> None:
    """Whatever captures, ranks and hosts are missing: no braces, question marks or leftovers stand in the advice."""
    for signature in catalog.signatures:
        names = used_names(signature)
        known = set(re.findall(r"\{\w+\}", " ".join((signature.summary, *signature.steps)))) - {
            f"{{{n}}}" for n in names
        }
        for present in subsets(names):
            captures = {name: VALUE if name in present else "" for name in names - PLACEHOLDERS}
            ranks = (3,) if {"rank", "ranks"} & set(present) else ()
            hosts = ("node1",) if "host" in present else ()
            filled = fill_remediation(signature, captures, ranks, hosts)
            for text in (filled.summary, *filled.steps):
                assert set(re.findall(r"\{\w+\}", text)) <= known, (signature.id, present, text)
                assert text in signature.steps or not DEBRIS.search(text), (signature.id, present, text)


def test_every_summary_of_the_catalog_survives_missing_captures(catalog: Catalog) -> None:
    """Advice that needs a capture for every sentence would leave a reader without any."""
    for signature in catalog.signatures:
        assert bool(fill_remediation(signature, {}).summary) == bool(signature.summary), signature.id


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{path} is missing: restore it.", "Restore it."),
        ("Free space (behind {path}), or go on.", "Free space, or go on."),
        ("Stop the process in {pid}; then restart. Read on.", "Read on."),
        ("Restart; then read {path}.", "Restart."),
        ("Restart. The message is: {path}.", "Restart."),
        ("Read the message: {path}.", "Read the message."),
        ("Rank {rank} asked for it on {host}.", "The affected rank asked for it on the host."),
        ("Open {host}:{path} first. Then restart.", "Then restart."),
        ("{ranks} hit it: torch.cuda.reset().", "The affected ranks hit it: torch.cuda.reset()."),
    ],
)
def test_a_missing_value_takes_its_clause_along(text: str, filled: str) -> None:
    """Parentheses, the head before a colon, a clause and what follows it, or the whole sentence."""
    assert fill_remediation(advice(text, pattern="(?P<path>x)(?P<pid>y)"), {"pid": ""}).summary == filled


def test_values_are_filled_in() -> None:
    """Captures, ranks and hosts; several ranks make a plural."""
    signature = advice("Rank {rank} lost {path} on {host} ({ranks}).", "rm {path}", pattern="(?P<path>x)")
    filled = fill_remediation(signature, {"path": "/a"}, (0, 1, 2), ("n1", "n2"))
    assert filled.summary == "Ranks 0-2 lost /a on n1, n2 (ranks 0-2)."
    assert filled.steps == ("rm /a",)
    assert fill_remediation(signature, {"path": "/a"}, (4,), ("n1",)).summary == "Rank 4 lost /a on n1 (rank 4)."


@pytest.mark.parametrize(
    ("hosts", "step"),
    [
        (("node7",), "kubectl cordon node7; sbatch --exclude=node7; ssh HOST true"),
        (("node7", "node8"), "kubectl cordon HOST; sbatch --exclude=NODE; ssh HOST true"),
        (("node7;reboot",), "kubectl cordon HOST; sbatch --exclude=NODE; ssh HOST true"),
        ((), "kubectl cordon HOST; sbatch --exclude=NODE; ssh HOST true"),
    ],
)
def test_a_command_for_the_host_of_the_failure_names_it(hosts: tuple[str, ...], step: str) -> None:
    """Only where there is one host, with a name that no shell reads as more; not in commands for other hosts."""
    signature = advice("Do it.", "kubectl cordon HOST; sbatch --exclude=NODE; ssh HOST true")
    assert fill_remediation(signature, {}, hosts=hosts).steps == (step,)


def test_braces_of_commands_stay() -> None:
    """Braces that no pattern captures belong to a command."""
    text = "on {host}: docker inspect -f '{{.Name}}' {0..7} {unknown}"
    assert fill_remediation(advice(text), {}, (), ("node1",)).summary == text.replace("{host}", "node1")


def test_a_step_without_value_is_left_out() -> None:
    """The other steps move up."""
    assert fill_remediation(advice("Do it.", "cat {path}", "ls", pattern="(?P<path>x)"), {}).steps == ("ls",)


def test_documentation_shows_what_the_log_fills_in() -> None:
    """Placeholders are in angle brackets, braces of commands stay."""
    signature = advice("Kill {pid} on {host}.", "echo {0..7} {end}", pattern="(?P<pid>x)")
    assert describe_advice(signature) == ("Kill <pid> on <host>.", "echo {0..7} {end}")
