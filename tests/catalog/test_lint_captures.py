from __future__ import annotations

import pytest

from tests.catalog.factories import GLOO, parse_signature
from triage.catalog.lint_captures import check_captures
from triage.evidence import extract_text


def messages(pattern: str, sample: str, **captures: str) -> list[str]:
    text = GLOO[: GLOO.index("match:")] + f"match:\n  any:\n    - text: >-\n        {pattern}\nsamples:\n  match:\n"
    text += f"    - text: >-\n        {sample}\n      captures: {captures}\n"
    one, problems = parse_signature(text, "gloo/peer-closed.yaml")
    assert one is not None, problems
    return [message for _, _, message, _ in check_captures(one, extract_text)]


@pytest.mark.parametrize(
    ("pattern", "sample", "expected"),
    [
        (r"box [(?P<name>[^\]\s]+)] broke", "box [front] broke", "'f bront': no match"),
        (r"box [(?P<name>[\w ]+)] broke", "box [front] broke", "'f:cront': no match"),
        (r"box [(?P<name>.+?)] broke", "box [front] broke", ""),
        (r"box `(?P<name>\w+)`? broke|box `(?P<name2>\w+)", "box `front` broke", "'f bront': '' is captured"),
        (r"box (?P<name>\w+) broke", "box front broke", ""),
        (r"box [(?P<name>[^\n]*\.pt)] broke", "box [front.pt] broke", ""),
        (r"box [(?P<name>/dev/[^\n]*)] broke", "box [/dev/front] broke", ""),
        (r"box [(?P<size>\d+)] broke", "box [17] broke", ""),
    ],
)
def test_captures_of_names_survive_blanks_and_colons(pattern: str, sample: str, expected: str) -> None:
    """Only names are changed, and only where something encloses them."""
    pattern = pattern.replace("[(?P", r"\[(?P").replace(")] ", r")\] ")
    value = "17" if "17" in sample else "front"
    name = "size" if "17" in sample else "name"
    problems = messages(pattern, sample, **{name: value})
    assert [message.removeprefix("the capture name does not survive ") for message in problems] == (
        [expected] if expected else []
    )


def test_captures_survive_an_apostrophe() -> None:
    """Python writes a text with an apostrophe in double quotes."""
    sample = "cannot open the box 'front' of this machine"
    assert len(messages("open the box '(?P<path>[^']+)'", sample, path="front")) == 1
    assert messages("open the box ['\"](?P<path>.+?)['\"] of", sample, path="front") == []
