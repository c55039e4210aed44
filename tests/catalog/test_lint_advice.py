from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.factories import parse_signature
from triage.catalog.lint_advice import check_advice, needs_reference
from triage.catalog.model import Signature

MATCH = "any:\n  - text: 'BOX: fault (?P<fault>one|two)'\n"


def make(match: str = MATCH, summary: str = "Look at the box.", action: str = "none", **keys: Any) -> Signature:
    values = {"role": "cause", "severity": "error", "references": "[https://a.example/b]", **keys}
    text = f"id: box.case\nrevision: 1\ntitle: A case\nstatus: {values.pop('status', 'stable')}\n"
    text += "".join(f"{key}: {value}\n" for key, value in values.items())
    text += "match:\n" + "".join(f"  {line}\n" for line in match.strip("\n").splitlines())
    text += f"remediation:\n  action: {action}\n  summary: '{summary}'\n"
    parsed, problems = parse_signature(text, "box/case.yaml")
    assert parsed is not None, problems
    return parsed


def messages(*args: Any, **keys: Any) -> list[str]:
    return [message for _, _, message, hint in check_advice(make(*args, **keys)) if hint]


def test_good_advice_has_no_problem() -> None:
    """A cause with a reference, a cheap action and no open captures is accepted."""
    assert messages() == []


@pytest.mark.parametrize("indication", ["ending", "waiting", "peer-lost"])
def test_what_says_how_something_ended_is_no_cause(indication: str) -> None:
    """Such a signature is a symptom, or depends on others."""
    assert "how something ended" in messages(tells=indication)[0]
    assert messages(tells=indication, role="either") == []
    assert messages(tells="own-failure") == []


def test_noise_needs_nothing_to_be_done() -> None:
    """Noise has the severity info and no action."""
    assert messages(role="noise", severity="info") == []
    assert messages(role="noise") == ["noise has the severity error"]
    assert messages(role="noise", severity="info", action="wait") == ["noise has the action wait"]


KERNEL = "any:\n  - {kind: kernel, text: 'box (?P<device>\\S+) died'}\n"
DRIVER = "any:\n  - text: 'NVRM: GPU (?P<busid>\\S+): fell off'\n"
TWO = "all:\n  - {component: NCCL, text: 'box failed'}\n  - {kind: kernel, text: 'box died'}\n"
SAME = "all:\n  - text: 'box failed'\n  - text: 'box died'\n"
UNNAMED = "any:\n  - {kind: kernel, text: 'box died'}\n"


@pytest.mark.parametrize(
    ("match", "proved"), [(KERNEL, True), (DRIVER, True), (TWO, True), (SAME, False), (UNNAMED, False), (MATCH, False)]
)
def test_a_costly_action_needs_proof(match: str, proved: bool) -> None:
    """Two facts of different origin, or a line of the kernel that names the device."""
    problems = messages(match, "Drain the node.", "drain-node")
    assert [message.startswith("the action drain-node is costly, but a branch") for message in problems] == (
        [] if proved else [True]
    )


@pytest.mark.parametrize(
    ("action", "summary"),
    [
        ("drain-node", "Take {host} out of the queue."),
        ("reset-gpu", "Reset the GPU of {host}."),
        ("contact-vendor", "Report this to the vendor."),
    ],
)
def test_the_summary_says_the_costly_action(action: str, summary: str) -> None:
    """The reader of the summary knows what the action is."""
    assert messages(KERNEL, summary, action) == []
    assert messages(KERNEL, "Look at it.", action) == [f"the summary does not say the action {action}"]
    assert "costly, but the role is either" in messages(KERNEL, summary, action, role="either")[0]


@pytest.mark.parametrize(
    ("summary", "costly"),
    [
        ("Delete the checkpoint.", True),
        ("Drain the node; then look.", True),
        ("Look at it; replace the cable.", True),
        ("Drain the node only where the kernel reports an error.", False),
        ("If it comes again, replace the adapter.", False),
        ("Do not delete the checkpoint.", False),
        ("Replace torch by a newer version.", False),
    ],
)
def test_an_order_in_the_summary_counts_as_costly(summary: str, costly: bool) -> None:
    """A costly verb without a condition needs the same proof, whatever the action is."""
    assert [message.startswith("the order") for message in messages(MATCH, summary)] == ([True] if costly else [])


def test_placeholders_are_captured_by_every_branch() -> None:
    """A name that one branch, or an optional group, leaves open is an error; in parentheses it may be left out."""
    two = "any:\n  - text: 'fault (?P<device>one)'\n  - text: 'broken(?: (?P<device>two))?'\n"
    (message,) = messages(two, "Look at the box: it is {device}.")
    assert "{device}, which is not certain to be captured by: broken(?: (?P<device>two))?" in message
    assert messages(two, "Look at the box ({device}).") == []
    certain = two.replace("(?: (?P<device>two))?", " (?P<device>two)")
    assert messages(certain, "Look at the box on {host}: it is {device}.") == []


def test_a_summary_holds_without_captures() -> None:
    """Pages of the catalog have no log that fills in the captures."""
    one = "any:\n  - text: 'fault (?P<device>one)'\n"
    assert messages(one, "Look at {device}.") == ["nothing is left of the summary where no capture is known"]
    assert messages(one, "Look at the box ({device}).") == []
    assert messages(one, "It is {device}. Look at it on {host}.") == []


def test_captures_that_decide_are_bound_or_shown() -> None:
    """A free reason in a cause could be any, so the reader must see it."""
    free = "any:\n  - text: 'box failed: (?P<reason>.+)'\n"
    assert messages(free) == ["the capture reason takes any value, and the summary does not show it"]
    assert messages(free, "The box failed: {reason}.") == []
    assert messages(free.replace(".+", "cold|wet")) == []
    assert messages(free, role="either") == []
    assert messages(free.replace("reason", "text")) == []


def test_causes_and_costly_actions_need_a_reference() -> None:
    """A missing one is a note; an address without https is an error."""
    assert messages(references="[]") == ["no reference says that this is the cause, or that the action helps"]
    assert messages(references="[http://a.example]") == ["the address is not https: http://a.example"]
    assert messages(references="[]", role="symptom") == []
    assert needs_reference(make(KERNEL, "Reset it.", "reset-gpu", role="symptom"))
    assert not needs_reference(make(status="deprecated"))


def test_deprecated_signatures_are_not_checked() -> None:
    """They match nothing any more."""
    assert messages(summary="Delete the disk.", references="[]", status="deprecated") == []
