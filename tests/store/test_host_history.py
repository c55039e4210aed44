"""What failed on a host or a device: a device is looked up with its host, and causes come with what was done."""

from __future__ import annotations

import dataclasses

from tests.store.factories import DAY, NOW, known_diagnosis, unknown_diagnosis
from triage.model import Diagnosis
from triage.store import Store
from triage.store.cause_work import WorkChange
from triage.store.search import Filter

ADDRESS = "0000:3b:00.0"


def on_device(name: str, *hosts: str, at: float = NOW, written: str = ADDRESS) -> Diagnosis:
    """Return a failure of a GPU at the same PCI address on these hosts."""
    diagnosis = known_diagnosis(name, "gpu.xid-79", host=hosts[0], at=at)
    root = diagnosis.root_cause
    assert root is not None
    root = dataclasses.replace(root, captures={"busid": written}, hosts=hosts)
    return dataclasses.replace(diagnosis, root_cause=root, findings=(root,))


def fill(store: Store) -> None:
    """Store failures of one address on two hosts, of both together, and others of the first host."""
    for number, hosts in enumerate((("node1",), ("node1",), ("node2",), ("node1", "node2"))):
        store.incidents.add(on_device(f"gpu-{number}", *hosts, at=NOW - number * DAY), now=NOW)
    store.incidents.add(known_diagnosis("memory", host="node1", at=NOW - 9 * DAY), now=NOW)
    store.incidents.add(unknown_diagnosis("torn"), now=NOW)


def test_a_host_has_its_failures_devices_and_causes(store: Store) -> None:
    """The counts are those of root causes on the host; each cause has its status, and comments are the latest first."""
    fill(store)
    store.cause_work.change(["gpu.xid-79"], WorkChange(status="acknowledged", assignee="anna"), actor="anna")
    for text in ("card reseated", "card replaced"):
        store.cause_work.comment("gpu.xid-79", text, actor="anna")
    history = store.host_history("node1")
    assert (history.incidents, history.first_at, history.last_at) == (5, NOW - 9 * DAY, NOW)
    assert [(item.name, item.count) for item in history.devices] == [(ADDRESS, 2)]
    statuses = {cause.id: cause.status for cause in history.causes}
    assert (statuses["gpu.xid-79"], statuses["cuda.out-of-memory"], len(statuses)) == ("acknowledged", "open", 3)
    assert [comment.text for _, comment in history.comments] == ["card replaced", "card reseated"]
    assert store.host_history("node9").incidents == 0


def test_a_device_means_nothing_without_its_host(store: Store) -> None:
    """The same address on another host is another device; a failure of two hosts names no device of either."""
    fill(store)
    history = store.host_history("node1", ADDRESS)
    assert (history.incidents, [cause.id for cause in history.causes]) == (2, ["gpu.xid-79"])
    assert store.host_history("node2", ADDRESS).incidents == 1
    listed = store.search.list_incidents(Filter(failed_host="node1", device=ADDRESS))
    assert [incident.job_name for incident in listed] == ["gpu-0", "gpu-1"]


def test_recurring_devices_have_their_hosts(store: Store) -> None:
    """The statistics count an address on each host by itself."""
    fill(store)
    (device,) = store.search.compute_stats().devices
    assert (device.name, device.count, device.spread) == (f"node1 {ADDRESS}", 2, 1)


def test_a_card_has_one_history_whatever_wrote_its_address(store: Store) -> None:
    """The kernel leaves out the function, nvidia-smi writes a longer domain; older incidents have what was written."""
    for number, written in enumerate(("0000:3b:00", "00000000:3B:00.0", ADDRESS)):
        store.incidents.add(on_device(f"gpu-{number}", "node1", written=written), now=NOW)
    assert [(item.name, item.count) for item in store.host_history("node1").devices] == [(ADDRESS, 3)]
    assert store.host_history("node1", "0000:3b:00").incidents == 3
    store.connections.execute("UPDATE incident SET device = '0000:3b:00' WHERE num = 1")
    assert store.host_history("node1", "0000:3b:00").incidents == 3
    assert len(store.search.list_incidents(Filter(failed_host="node1", device="0000:3b:00"))) == 3
