"""triage.records.launcher_worlds"""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.records.launcher_worlds import read_launcher_world
from triage.records.pairing_lines import read_pairings

WORLD = {"n1": [0, 1], "n2": [4, 5]}
PLACES = [("n1", 0, 0), ("n1", 1, 1), ("n2", 0, 2), ("n2", 1, 3)]


def encode(world: object) -> str:
    """Return a world as DeepSpeed's runner passes it."""
    return base64.urlsafe_b64encode(json.dumps(world).encode()).decode()


def places(text: str) -> list[tuple[str | None, int | None, int | None]] | None:
    """Return host, local rank and rank of each process."""
    world = read_launcher_world(text)
    return None if world is None else [(one.host, one.local_rank, one.rank) for one in world]


@pytest.mark.parametrize(
    "text",
    [
        f"cmd = pdsh -w n1,n2 python -m deepspeed.launcher.launch --world_info={encode(WORLD)} --node_rank=%n train.py",
        f"python -m deepspeed.launcher.launch --world_info {encode(WORLD).rstrip('=')} --node_rank=0 train.py",
        f"[launch.py:146:main] WORLD INFO DICT: {WORLD}",
        "[launch.py:163:main] global_rank_mapping=defaultdict(<class 'list'>, {'n1': [0, 1], 'n2': [2, 3]})",
    ],
)
def test_each_form_gives_every_rank(text: str) -> None:
    """Numbers of devices are no ranks: these follow the order of the hosts."""
    assert places(text) == PLACES


def test_one_machine_has_no_host_name() -> None:
    """The runner calls it localhost."""
    assert places(f"--world_info={encode({'localhost': [3, 1]})} x") == [(None, 0, 0), (None, 1, 1)]


@pytest.mark.parametrize(
    "world",
    [
        {"n1": [0, 0]},
        {"n1": [0, True]},
        {"n1": [-1]},
        {"n1": "01"},
        {"n1; rm": [0]},
        {"n1": list(range(1025))},
        {"n1": [1 << 16]},
        ["n1"],
        "n1",
    ],
)
def test_another_shape_is_no_world(world: object) -> None:
    """Nor is one that is larger than any job."""
    assert not places(f"--world_info={encode(world)} x")


def test_the_largest_world_is_read() -> None:
    """1,024 processes on a host, and numbers below 65,536."""
    world = read_launcher_world(f"WORLD INFO DICT: { {f'n{number}': list(range(1024)) for number in range(8)} }")
    assert world is not None
    assert world[-1] == Origin(rank=8191, local_rank=1023, host="n7")
    assert read_launcher_world("global_rank_mapping={'n1': [65535]}") == (Origin(rank=65535, local_rank=0, host="n1"),)


def test_a_command_still_states_its_node() -> None:
    """What else it says is read as before."""
    pairings = list(read_pairings(Origin(), f"launch --world_info={encode(WORLD)} --node_rank=1 train.py"))
    assert [one.origin.rank for one in pairings] == [0, 1, 2, 3, None]
    assert pairings[-1].node == 1


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    """What is no base64, JSON or dictionary gives nothing."""
    for form in ("WORLD INFO DICT: {{{}}}", "--world_info={}", "global_rank_mapping={{{}}}"):
        assert isinstance(read_launcher_world(form.format(text)), tuple | None)


@pytest.mark.parametrize(("end", "is_read"), [(1 << 17, True), ((1 << 17) + 1, False)])
def test_the_first_128_kib_of_a_line_are_read(end: int, is_read: bool) -> None:
    """A map that ends behind them is not read."""
    line = f"WORLD INFO DICT: {WORLD}".rjust(end)
    assert places(line) == (PLACES if is_read else None)
