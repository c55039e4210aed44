"""triage.records.described_pods"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.records.described_pods import DescribedPod, find_described_pods, read_description, read_table
from triage.records.host_pairs import HostPair, find_host_pairs

HEAD = [
    "Name:             train-worker-1",
    "Namespace:        ml",
    "Priority:         0",
    "Node:             gpu-7/10.0.0.7",
]
TABLE = """\
NAMESPACE   NAME             READY   STATUS    RESTARTS      AGE   IP           NODE     NOMINATED NODE
ml          train-worker-0   1/1     Running   1 (3m ago)    9m    10.0.1.10    gpu-6    <none>
ml          train-worker-1   0/1     Error     0             9m    10.0.1.11    gpu-7    <none>
ml          train-worker-2   0/1     Pending   0             9m    <none>       <none>   <none>
done"""


@pytest.mark.parametrize(
    ("lines", "pod"),
    [
        (HEAD, DescribedPod("train-worker-1", "gpu-7")),
        (HEAD[1:], DescribedPod("", "gpu-7")),
        ([*HEAD, "Status:           Failed", "Containers:", "  trainer:"], DescribedPod("train-worker-1", "gpu-7")),
        ([*HEAD, "", "Name:             train-worker-2"], None),
        ([*HEAD, "training goes on"], None),
        (["Name:             train-worker-1", "Node:             <none>"], None),
        (["Node: every node of the job", "Reason: unclear"], None),
    ],
)
def test_a_description_is_that_of_the_last_pod(lines: list[str], pod: DescribedPod | None) -> None:
    """Its keys follow its head; another text or another name ends it."""
    assert read_description(lines) == pod


def test_a_table_gives_the_node_of_each_pod() -> None:
    """Columns are told by the headings; a pod that waits for a node has none."""
    pods = list(read_table(TABLE.split("\n")))
    assert pods == [DescribedPod("train-worker-0", "gpu-6"), DescribedPod("train-worker-1", "gpu-7")]
    assert not list(read_table(["NAME   READY   STATUS", "train-0   1/1   Running"]))


def test_pods_and_nodes_are_names_of_one_host() -> None:
    """Also behind the prefix of a collector."""
    data = "\n".join(f"2026-11-21T03:07:45.372001Z stdout F {line}" for line in (*HEAD, *TABLE.split("\n"))).encode()
    text = text_of(data)
    assert next(find_described_pods(text, data, 0)) == DescribedPod("train-worker-1", "gpu-7")
    pairs = find_host_pairs(text, b"", data, 0)
    assert {HostPair("train-worker-0", "gpu-6", True), HostPair("train-worker-1", "gpu-7", True)} <= set(pairs)


def test_a_table_needs_its_headings() -> None:
    """And ends at a line with fewer columns."""
    assert not list(read_table([]))
    assert not list(read_table(["POD   NODE", "train-0   gpu-6"]))
    lines = ["NAME      NODE", "train-0   gpu-6", "Train-1   gpu-7", "train-2   gpu-8", "done", "train-3   gpu-9"]
    assert [pod.node for pod in read_table(lines)] == ["gpu-6", "gpu-8"]


@pytest.mark.parametrize(("count", "most"), [(64, 64), (65, 64)])
def test_64_descriptions_are_read(count: int, most: int) -> None:
    """The first ones of a part of a source."""
    data = "".join(f"Name:   pod-{number}\nNode:   gpu-7\nend\n" for number in range(count)).encode()
    assert len(list(find_described_pods(text_of(data), data, 0))) == most


@pytest.mark.parametrize(("distance", "is_read"), [(1 << 14, True), ((1 << 14) + 1, False)])
def test_the_name_of_a_pod_stands_near_its_node(distance: int, is_read: bool) -> None:
    """At most 16 KiB above; a node without a name says nothing here."""
    name = "Name:   train-0\n"
    data = f"{name}  {'x' * (distance - len(name) - 3)}\nNode:   gpu-7\n".encode()
    assert len(list(find_described_pods(text_of(data), data, 0))) == is_read
