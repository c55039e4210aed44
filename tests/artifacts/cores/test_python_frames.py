"""Python's frames among the native ones of a core."""

from __future__ import annotations

import importlib.util

import pytest

from tests.artifacts.cores.factories import CoreFile
from triage.artifacts.cores.limited_process import Limits
from triage.artifacts.cores.local_files import LocalFiles, SearchPaths
from triage.artifacts.cores.python_frames import add_python_frames, merge_frames
from triage.stacks.model import Frame, Thread

NATIVE = Thread((Frame("read_header", module="/opt/lib/libtrain.so"), Frame("main", module="/opt/app/train")), tid=77)
PYTHON = (Frame("load_shard", file="train.py", line=7, language="python"),)


def test_missing_pystack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pystack the threads stay as they are, and the remark says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    threads, remarks = add_python_frames((NATIVE,), "core", CoreFile().parsed(), LocalFiles(), SearchPaths(), Limits())
    assert threads == (NATIVE,)
    assert [code for code, _ in remarks] == ["python-frames"]
    assert "pip install 'triage-kb[cores]'" in remarks[0][1]


def test_core_without_its_program() -> None:
    """Where the program is not on this machine, the threads stay as they are; another remark names the program."""
    core = CoreFile().parsed()
    assert add_python_frames((NATIVE,), "core", core, LocalFiles(), SearchPaths(), Limits()) == ((NATIVE,), [])


def test_frames_without_an_interpreter() -> None:
    """Python's frames follow native ones in which no interpreter is; without any, the thread stays as it is."""
    assert merge_frames(NATIVE, ()) is NATIVE
    assert merge_frames(NATIVE, PYTHON).frames == (*NATIVE.frames, *PYTHON)
    interpreted = Thread((NATIVE.frames[0], Frame("_PyEval_EvalFrameDefault", module="/lib/libpython3.11.so.1.0")))
    assert merge_frames(interpreted, PYTHON).frames == (NATIVE.frames[0], *PYTHON)
