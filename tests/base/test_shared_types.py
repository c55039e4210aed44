"""Threads may decode the same class for the first time at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import triage

ROOT = Path(triage.__file__).parent
DECODERS = {"msgspec.convert", "msgspec.json.decode", "msgspec.msgpack.decode"}
# Twenty classes, each decoded for the first time by sixteen threads at once. Without `share_type` 8 of 10 runs die.
PROGRAM = """
import dataclasses, sys, threading
import msgspec
from triage.base.shared_types import share_type

def make_type():
    leaf = dataclasses.make_dataclass("Leaf", [("number", int, 0), ("texts", tuple[str, ...], ())])
    return dataclasses.make_dataclass("Both", [("leaf", leaf), ("leaves", tuple[leaf, ...]), ("sums", dict[str, int])])

def decode(kind, gate):
    gate.wait()
    msgspec.convert({"leaf": {"number": 1}, "leaves": [{"number": 2}], "sums": {}}, share_type(kind))

sys.setswitchinterval(1e-6)
for _ in range(20):
    kind, gate = make_type(), threading.Barrier(16)
    threads = [threading.Thread(target=decode, args=(kind, gate)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_decode_a_new_class_at_once() -> None:
    """No process dies when many threads decode the same class for the first time."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def _unshared_types(source: str) -> list[str]:
    """Return the calls of msgspec's decoders with a type that is not from `share_type`."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    types = [
        (call, [*call.args[1:], *(item.value for item in call.keywords if item.arg == "type")])
        for call in calls
        if ast.unparse(call.func) in DECODERS
    ]
    return [
        ast.unparse(call)
        for call, classes in types
        if classes and not ast.unparse(classes[0]).startswith("share_type(")
    ]


def test_every_decoded_type_is_shared() -> None:
    """All code decodes classes by `share_type`, since any of it may run in threads."""
    assert _unshared_types("msgspec.convert(value, Finding)\nmsgspec.json.decode(data, type=list[Finding])")[1:]
    files = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert not [f"{path}: {call}" for path, source in files.items() for call in _unshared_types(source)]
