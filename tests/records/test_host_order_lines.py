"""triage.records.host_order_lines"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.records.factories import text_of
from triage.ranks.host_orders import HostOrder
from triage.records.host_order_lines import find_host_orders, read_command, read_hostfile

PAIR = (("n1", 4), ("n2", 4))
BARE = (("n1", 0), ("n2", 0))


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("+ mpirun -H n1:4,n2:4 -np 8 python train.py", HostOrder(PAIR, 8)),
        ('Command "mpirun --host n1:4,n2:4 -np 8 -x NCCL_DEBUG=INFO python"', HostOrder(PAIR, 8)),
        ("horovodrun -np 8 -H n1:4,n2:4 python train.py", HostOrder(PAIR, 8)),
        ("/opt/mpi/bin/mpiexec.hydra -hosts n1,n2 -ppn 4 -n 8 ./train", HostOrder(PAIR, 8)),
        ("mpirun --host n1,n1,n2,n2 python train.py", HostOrder((("n1", 2), ("n2", 2)))),
        ("mpirun -host n1,n2 python train.py", HostOrder(BARE)),
        ("mpirun -H n1:4,n2:4 --map-by node -np 8 python", None),
        ("mpirun -H n1:4,n2:4 -bynode python", None),
        ("mpirun -H n1:4 -np 4 python a.py : -H n2:4 -np 4 python b.py", None),
        ("mpirun -H localhost:4,n2:4 python", None),
        ("mpirun -H n1:4 -np 4 python", None),
        ("mpirun -np 8 python train.py", None),
        ("curl -H n1:4,n2:4 http://x", None),
        ("mpirun -H n1:1025,n2:4 python", None),
    ],
)
def test_commands_state_an_order(text: str, order: HostOrder | None) -> None:
    """Not where the launcher goes around the hosts, or starts several programs."""
    assert read_command(text) == order


@pytest.mark.parametrize(
    ("name", "content", "order"),
    [
        ("hostfile", "n1 slots=4\nn2 slots=4 max_slots=8\n", HostOrder(PAIR)),
        ("conf/any.txt", "# two nodes\nn1 slots=4\n\nn2 slots=4 # slow\n", HostOrder(PAIR)),
        ("machinefile", "n1:4\nn2:4\n", HostOrder(PAIR)),
        ("any.txt", "n1:4\nn2:4\n", None),
        ("pbs_nodefile.txt", "n1\nn1\nn2\nn2\n", HostOrder((("n1", 2), ("n2", 2)))),
        ("hosts", "n1\nn2\n", HostOrder(BARE)),
        ("any.txt", "n1\nn2\n", None),
        ("hostfile", "n1 slots=4\nn2 slots=4\nstarted\n", None),
        ("hostfile", "n1 slots=4\nn1 slots=4\n", None),
        ("hosts", "127.0.0.1 localhost\n10.0.0.7 n1\n", None),
        ("hostfile", "", None),
    ],
)
def test_hostfiles_state_an_order(name: str, content: str, order: HostOrder | None) -> None:
    """Every line has the form; forms that other files have too need the name of a hostfile."""
    assert read_hostfile(name, content) == order


def test_commands_are_found_in_a_log() -> None:
    """Behind prefixes, among other lines."""
    data = b"step 3\n2026-11-21 03:07:45,372 INFO mpirun -H n1:4,n2:4 -np 8 python\nstep 4\n"
    assert find_host_orders(text_of(data), b"", data, 0) == (HostOrder(PAIR, 8),)


@given(st.text(max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    """Nothing is raised; what is taken for an order has names and no negative number of slots."""
    orders = read_command(f"mpirun -H {text}"), read_hostfile("hostfile", text)
    for order in (order for order in orders if order is not None):
        assert order.hosts
        assert all(name and slots >= 0 for name, slots in order.hosts)


def test_orders_of_the_largest_size_are_read() -> None:
    """1,024 slots on a host, 16,384 hosts."""
    assert read_command("mpirun -H n1:1024,n2:4 python") == HostOrder((("n1", 1024), ("n2", 4)))
    for count, is_read in ((1 << 14, True), ((1 << 14) + 1, False)):
        assert (read_hostfile("hosts", "".join(f"n{number}\n" for number in range(count))) is not None) is is_read


@pytest.mark.parametrize(("lines", "is_read"), [(8 << 14, True), ((8 << 14) + 1, False)])
def test_a_hostfile_has_at_most_131072_lines(lines: int, is_read: bool) -> None:
    """Eight for each host."""
    content = "n1\n" * (lines - 1) + "n2\n"
    order = read_hostfile("hosts", content)
    assert (order is not None) == (is_read and lines - 1 <= 1 << 10)
    slots = "n1\n" * 1024 + "n2\n"
    assert read_hostfile("hosts", slots) == HostOrder((("n1", 1024), ("n2", 1)))
    assert read_hostfile("hosts", "n1\n" + slots) is None


@pytest.mark.parametrize(("others", "is_read"), [(7, True), (8, False)])
def test_eight_commands_of_a_launcher_are_read(others: int, is_read: bool) -> None:
    """The first ones at each end of a source, each once."""
    command = b"mpirun -H n1:4,n2:4 -np 8 python\n"
    data = b"mpirun is here\n" * others + command
    assert len(find_host_orders(text_of(data), b"", data, 0)) == is_read
    assert find_host_orders(text_of(command * 2), command, command, len(command)) == (HostOrder(PAIR, 8),)
    assert find_host_orders(text_of(command + b"x\n"), command, b"x\n", len(command)) == (HostOrder(PAIR, 8),)


def test_a_source_that_is_a_hostfile_states_its_order() -> None:
    """Only if all of it is known, up to 512 KiB."""
    for size, tail_offset, is_read in ((1 << 19, 0, True), ((1 << 19) + 1, 0, False), (100, 1, False)):
        lines = b"n1 slots=4\nn2 slots=4\n"
        data = lines + b"\n" * (size - len(lines))
        assert bool(find_host_orders(text_of(data), b"", data, tail_offset)) is is_read
