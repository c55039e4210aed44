"""Faulty devices in dumps of `nvidia-smi`, `nvidia-smi -q`, `nvidia-smi --query-… --format=csv` and `npu-smi info`.

Layouts as the tools print them: a table of boxes with the ECC count in its last column, and ERR! where a sensor does
not answer; with -q indented `Name : value` under `GPU <PCI address>`; npu-smi with the health in the second column (OK,
Warning, Alarm, Critical).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Severity
from triage.sources.environment_dumps import csv_columns

_GPU_ROW = lazy_re(
    r"^\| +(?P<index>\d{1,18}) +\S.*\| +(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)"
    r" +\S+ +\| +(?P<ecc>\d+|N/A|Off|ERR!) +\|"
)
_SENSORS = lazy_re(r"^\| *(?:ERR!|\S+ +ERR!|.*\bUnknown Error\b)")
_NPU_ROW = lazy_re(r"^\| *(?P<index>\d{1,18})(?: +\d+)? +(?P<name>\S+) +\| *(?P<health>[A-Za-z]+) +\|")
_NPU_BUS = lazy_re(r"^\| *\d+(?: +\d+)? +\| *(?P<bus>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d) +\|")
_GPU_HEAD = lazy_re(r"^GPU (?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)$")
_LOST = lazy_re(
    r"(?:GPU ?(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d): "
    r"(?P<what>GPU is lost|Unknown Error|GPU requires reset|Not Found))"
)
_ENTRY = lazy_re(r"^(?P<indent> +)(?P<name>\S[^:]*?) *(?:: (?P<value>.*))?$")
_NONE = ("0", "N/A", "No", "None", "Not Active", "[N/A]", "")
# Of -q: section and name in small letters, the sentence for the fault, and its severity.
_QUERY: tuple[tuple[str, str, str, Severity], ...] = (
    ("ecc errors/volatile", "uncorrectable", "uncorrectable ECC errors since the driver was loaded", "error"),
    ("ecc errors/volatile", "double bit", "double bit ECC errors since the driver was loaded", "error"),
    ("ecc errors/aggregate", "uncorrectable", "uncorrectable ECC errors in its life", "warning"),
    ("retired pages", "double bit ecc", "pages retired after double bit errors", "warning"),
    ("retired pages", "pending", "pages wait for a reset to be retired", "error"),
    ("remapped rows", "uncorrectable error", "rows remapped after uncorrectable errors", "warning"),
    ("remapped rows", "pending", "rows wait for a reset to be remapped", "error"),
    ("remapped rows", "remapping failure occurred", "a row could not be remapped", "error"),
    ("ecc errors", "sram threshold exceeded", "more SRAM errors than the part may have", "error"),
    ("gpu reset status", "reset required", "it must be reset", "error"),
    ("reasons", "hw thermal slowdown", "it is slowed down by heat", "warning"),
    ("reasons", "hw power brake slowdown", "it is slowed down by the power supply", "warning"),
    ("", "gpu recovery action", "the driver asks for a recovery", "error"),
)
# The same for the columns of CSV: how their names begin.
_COLUMNS: tuple[tuple[str, str, Severity], ...] = (
    ("ecc.errors.uncorrected.volatile.", "uncorrectable ECC errors since the driver was loaded", "error"),
    ("ecc.errors.uncorrected.aggregate.", "uncorrectable ECC errors in its life", "warning"),
    ("retired_pages.d", "pages retired after double bit errors", "warning"),
    ("retired_pages.pending", "pages wait for a reset to be retired", "error"),
    ("remapped_rows.uncorrectable", "rows remapped after uncorrectable errors", "warning"),
    ("remapped_rows.pending", "rows wait for a reset to be remapped", "error"),
    ("remapped_rows.failure", "a row could not be remapped", "error"),
    ("reset_status.reset_required", "it must be reset", "error"),
    ("clocks_throttle_reasons.hw_thermal", "it is slowed down by heat", "warning"),
    ("clocks_event_reasons.hw_thermal", "it is slowed down by heat", "warning"),
    ("clocks_throttle_reasons.hw_power_brake", "it is slowed down by the power supply", "warning"),
    ("clocks_event_reasons.hw_power_brake", "it is slowed down by the power supply", "warning"),
    ("gpu_recovery_action", "the driver asks for a recovery", "error"),
)
_NO_ANSWER = ("[Unknown Error]", "[GPU is lost]", "[GPU requires reset]", "ERR!")
_HEALTHY = (*_NONE, "[Not Supported]", "[Insufficient Permissions]", "[Not Found]", *_NO_ANSWER)
_HEALTH: dict[str, Severity] = {"warning": "warning", "alarm": "error", "critical": "error", "unknown": "warning"}


class DeviceFault(NamedTuple):
    """One fault of one device. `number` counts as the tool does (None: only the PCI address is known), `bus` is its
    PCI address if the tool prints it.
    """

    kind: str
    number: int | None
    bus: str
    text: str
    severity: Severity
    line: int


def device_faults(text: str) -> list[DeviceFault]:
    """Return the faulty devices of one dump, in the order of its lines; none for a dump of something else."""
    lines = text.splitlines()
    if "NVSMI LOG" in text[:4096]:
        return [*_of_query(lines)]
    if "npu-smi " in text[:4096]:
        return [*_of_npu(lines)]
    return [*_of_table(lines)] if "NVIDIA-SMI" in text[:4096] else [*_of_csv(lines)]


def _of_table(lines: list[str]) -> Iterator[DeviceFault]:
    index, bus = None, ""
    for number, line in enumerate(lines, 1):
        lost = _LOST.search(line)
        if lost is not None:
            yield DeviceFault("GPU", None, lost["bus"], lost["what"], "error", number)
        row = _GPU_ROW.match(line)
        if row is not None:
            index, bus = int(row["index"]), row["bus"]
            if row["ecc"].isdecimal() and int(row["ecc"]):
                yield DeviceFault(
                    "GPU",
                    index,
                    bus,
                    f"uncorrectable ECC errors since the driver was loaded: {row['ecc']}",
                    "error",
                    number,
                )
        elif index is not None and _SENSORS.match(line):
            yield DeviceFault("GPU", index, bus, "a sensor does not answer (ERR!)", "error", number)
            index = None


def _of_csv(lines: list[str]) -> Iterator[DeviceFault]:
    """Yield the last report of each fault of each device, because such files may be written every few seconds."""
    names: list[str] = []
    faults: dict[tuple[str, str], DeviceFault] = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("No devices were found"):
            faults["", ""] = DeviceFault("GPU", None, "", "no device was found", "error", number)
        elif header := csv_columns(line.encode()):
            names = header
        elif names and line.count(", ") + 1 == len(names):
            for label, fault in _of_row(dict(zip(names, line.rstrip().split(", "), strict=True)), number):
                faults[f"{fault.number} {fault.bus}", label] = fault
    yield from faults.values()


def _of_row(row: dict[str, str], line: int) -> Iterator[tuple[str, DeviceFault]]:
    """Yield the faults in one row, each once, with a label."""
    index = int(row["index"]) if row.get("index", "").isdecimal() else None
    identifiers = (row.get(column, "") for column in ("pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid"))
    name = next((text for text in identifiers if text and not text.startswith("[")), "")
    labels = set()
    for column, value in row.items():
        known = next(((text, severity) for start, text, severity in _COLUMNS if column.startswith(start)), None)
        if known is not None and value not in _HEALTHY and value.lower() != "none" and known[0] not in labels:
            labels.add(known[0])
            text = (
                known[0]
                if value in ("Yes", "Active") or (value == "1" and "row could" in known[0])
                else f"{known[0]}: {value}"
            )
            yield known[0], DeviceFault("GPU", index, name, text, known[1], line)
    unanswered = {column: value for column, value in row.items() if value in _NO_ANSWER}
    if unanswered:
        what = f"{', '.join([*unanswered][:4])} {min(unanswered.values())}"
        yield "silent", DeviceFault("GPU", index, name, f"a sensor does not answer: {what}", "error", line)


def _of_npu(lines: list[str]) -> Iterator[DeviceFault]:
    for number, line in enumerate(lines, 1):
        row = _NPU_ROW.match(line)
        severity = _HEALTH.get(row["health"].lower()) if row is not None else None
        if row is not None and severity is not None:
            below = _NPU_BUS.match(lines[number]) if number < len(lines) else None
            yield DeviceFault(
                "NPU", int(row["index"]), below["bus"] if below else "", f"health is {row['health']}", severity, number
            )


def _of_query(lines: list[str]) -> Iterator[DeviceFault]:
    bus, index = "", -1
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        head = _GPU_HEAD.match(line.rstrip())
        if head is not None:
            bus, index, above = head["bus"], index + 1, []
            continue
        entry = _ENTRY.match(line.rstrip()) if bus else None
        if entry is None:
            continue
        indent, name = len(entry["indent"]), entry["name"].lower()
        above = [(depth, title) for depth, title in above if depth < indent]
        value = (entry["value"] or "").strip()
        if entry["value"] is None:
            above.append((indent, name))
        elif value not in _NONE:
            fault = _describe_query_fault("/".join(title for _, title in above), name, value)
            if fault is not None:
                yield DeviceFault("GPU", index, bus, *fault, number)


def _describe_query_fault(section: str, name: str, value: str) -> tuple[str, Severity] | None:
    for where, what, text, severity in _QUERY:
        path = f"{section}/{name}"
        if where in path and what in path[path.index(where) + len(where) :]:
            return (text if value in ("Yes", "Active") else f"{text}: {value}"), severity
    return None


def pack_fault(fault: DeviceFault) -> str:
    """Return the fault as the value of a field."""
    return f"{fault.severity}|{fault.kind}|{'' if fault.number is None else fault.number}|{fault.bus}|{fault.text}"


def unpack_fault(value: str, line: int = 0) -> DeviceFault:
    """Return the fault that was packed."""
    severity, kind, index, bus, text = value.split("|", 4)
    return DeviceFault(kind, int(index) if index else None, bus, text, cast(Severity, severity), line)
