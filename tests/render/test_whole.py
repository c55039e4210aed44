"""The whole output of each format for bots and CI, for one diagnosis of each verdict.

The expected texts lie in tests/render/whole/. After a wanted change: `python -m tests.render.test_whole`, then read the
difference.
"""

from __future__ import annotations

import builtins
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.render.factories import ALL
from triage.model.diagnosis import Diagnosis
from triage.render import github, gitlab, render, slack

WHOLE = Path(__file__).parent / "whole"
LINK = "https://triage.example/incidents/i-4f2a9c"
FORMATS = ("slack", "github", "gitlab", "codequality", "junit", "sarif")


def written(name: str) -> str:
    """Return the output for each sample diagnosis."""
    return "".join(f"=== {diagnosis.verdict}\n{text}" for diagnosis in ALL for text in texts(name, diagnosis))


def texts(name: str, diagnosis: Diagnosis) -> Iterator[str]:
    yield render(diagnosis, name, link=LINK) if name in ("slack", "gitlab") else render(diagnosis, name)
    if name == "slack":
        made = slack.message(diagnosis, link=LINK, incident="i-4f2a9c", notes=["Agreed by anna"])
        yield json.dumps(made, ensure_ascii=False, indent=2) + "\n"
    if name == "github":
        yield github.comment(diagnosis, "ci/train", link=LINK)
        yield github.summary(diagnosis, link=LINK)
    if name == "gitlab":
        yield gitlab.note(diagnosis, "ci/train", link=LINK)


@pytest.mark.parametrize("name", FORMATS)
def test_the_output_equals_the_stored_file(name: str) -> None:
    """The expected output lies in tests/render/whole/."""
    assert written(name) == (WHOLE / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_renderers_are_pure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock, no file, no network, no environment: the same diagnosis is the same text."""
    before = written(name)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a renderer asked for more than its diagnosis")

    for place, what in ((time, "time"), (time, "monotonic"), (builtins, "open"), (socket, "socket"), (os, "getenv")):
        monkeypatch.setattr(place, what, never)
    assert written(name) == before


if __name__ == "__main__":
    WHOLE.mkdir(exist_ok=True)
    for name in FORMATS:
        (WHOLE / f"{name}.txt").write_text(written(name), encoding="utf-8")
