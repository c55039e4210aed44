"""The wordings that frequent messages have in the versions in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from triage.base.options import Options
from triage.pipeline.stages import read_job

MESSAGES = yaml.safe_load((Path(__file__).parent / "wordings_of_versions.yaml").read_text())


class Wording(NamedTuple):
    """A line, the versions that print it, and the id of the signature that must find it."""

    versions: str
    line: str
    signature: str


def _list_wordings(message: dict[str, object]) -> list[Wording]:
    wordings = message["wordings"]
    assert isinstance(wordings, list)
    return [Wording(**{"signature": message["signature"], **entry}) for entry in wordings]


def _find_missed(wordings: Sequence[Wording], directory: Path) -> list[Wording]:
    """Return the wordings that their signature does not find, when each is the log of one rank of a job."""
    directory.mkdir()
    for number, wording in enumerate(wordings):
        (directory / f"wording-{number}.log").write_text(f"{wording.line}\n")
    result = read_job([str(directory)], Options(), None).result
    matched = {
        (signature, Path(result.facts[index].source).name)
        for signature, match in result.matches.items()
        for index in match.indices
    }
    return [
        wording
        for number, wording in enumerate(wordings)
        if (wording.signature, f"wording-{number}.log") not in matched
    ]


@pytest.mark.parametrize("message", [pytest.param(entry, id=entry["message"]) for entry in MESSAGES])
def test_each_wording_is_found(message: dict[str, object], tmp_path: Path) -> None:
    """Each wording is evidence of its signature. Equal lines of one job count once, so the rest is read alone."""
    rest = _find_missed(_list_wordings(message), tmp_path / "job")
    missed = [_find_missed([wording], tmp_path / str(number)) for number, wording in enumerate(rest)]
    assert [wording for one in missed for wording in one] == []


def test_messages_have_several_wordings() -> None:
    """At least twenty messages have two wordings or more, and no line occurs twice."""
    sizes = {entry["message"]: len(entry["wordings"]) for entry in MESSAGES}
    assert len(sizes) == len(MESSAGES) >= 20
    assert [message for message, size in sizes.items() if size < 2] == []
    lines = Counter(wording.line for entry in MESSAGES for wording in _list_wordings(entry))
    assert [line for line, times in lines.items() if times > 1] == []
