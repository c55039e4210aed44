"""Recognize dumps of settings or versions by all of their lines, so that no log is taken for one.

Known: `env`, `printenv`, `export -p`, `declare -x`, /proc/PID/environ, `pip freeze`, `pip list`, `nvidia-smi` (also -q,
and --query-… with --format=csv), `npu-smi info`, torch.utils.collect_env.
"""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re

_NAME = rb"[A-Za-z_][A-Za-z0-9_.%()-]{0,127}"
_PAIR = lazy_re(rb"(?:export |declare -x |typeset -x )?" + _NAME + rb"(?:=(?!=)|$)")
_TYPICAL_VARIABLE = lazy_re(
    rb"(?:^|[\n\0])(?:export |declare -x )?(?:PATH|HOME|PWD|USER|HOSTNAME|SHELL|LANG|"
    rb"RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|LD_LIBRARY_PATH"
    rb"|(?:NCCL|HCCL|LCCL|TORCH|PYTORCH|CUDA|ASCEND|SLURM|OMPI)_[A-Z0-9_]+)="
)
_PACKAGE = lazy_re(rb"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[\w,]+\])?(?:==\d| @ \S)|-e \S+[+@/]|# ")
_LISTED = lazy_re(rb"[A-Za-z0-9][A-Za-z0-9._-]* +\d|Package +Version|-+ +-+")
_TABLE = lazy_re(rb"[|+=-]|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ")
_REPORT = lazy_re(
    rb"[A-Z][\w /'().-]*:|\[(?:pip|conda)\d?\]|  ?\S|Collecting environment|Versions of relevant"
    rb"|\[|GPU \d+:|CPU:|/\S+$|=+$"
    rb"|(?:vLLM|cuDNN) [A-Zv]|[A-Z][A-Z0-9_]+=|(?:GPU|NIC)\d+[ \t]"
)
_QUERY = lazy_re(rb"=+NVSMI LOG=+$|GPU [0-9A-Fa-f:.]+$| +\S|[A-Z][\w ]+ : ")
_LOG_LINE = lazy_re(rb"Traceback|Error\b|\bERROR\b|\bWARN|\bFATAL\b|\[rank\d|NCCL (?:INFO|WARN)|exitcode")
_SMI = lazy_re(rb"\| *(?:NVIDIA-SMI|npu-smi) \d")
_MIN_LINES = 3
# nvidia-smi --query-gpu (or -remapped-rows, -retired-pages) with --format=csv: names of columns, some with a unit. One
# must be the tool's own.
_COLUMN = lazy_re(rb"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?: \[[^\],]+\])?")
_NVIDIA_COLUMN = lazy_re(
    rb"(?:pci|ecc|clocks|enforced|fan|memory|power|pcie|temperature|utilization|retired_pages|"
    rb"remapped_rows|clocks_\w+_reasons|reset_status)\..*"
    rb"|gpu_(?:bus_id|uuid|name|serial|recovery_action)|driver_version|pstate|vbios_version"
)
_NO_DEVICES = b"No devices were found"


def is_environment(head: bytes, *, whole: bool) -> bool:
    """Return whether the file that begins with `head` is such a dump; without `whole`, whether it may be one."""
    if head[:2] in (b"\x1f\x8b", b"PK") or not head:
        return False
    start = head[:4096].lstrip()
    if b"\0" in head:
        return b"=" in start[:128] and _PAIR.match(start) is not None and _is_environ(head, whole)
    if _PAIR.match(start.split(b"\n", 1)[0]):
        return _all_lines_match(head, _PAIR, whole, typical=_TYPICAL_VARIABLE)
    if _SMI.search(start):
        return _all_lines_match(head, _TABLE, whole)
    if start.startswith(b"=") and b"NVSMI LOG" in start[:64]:
        return _all_lines_match(head, _QUERY, whole)
    if is_gpu_query(start):
        return _is_csv(head, whole)
    if start.startswith((b"Collecting environment information", b"PyTorch version:", b"<frozen runpy>")):
        return _all_lines_match(head, _REPORT, whole, strict=True)
    if _PACKAGE.match(start):
        return _all_lines_match(head, _PACKAGE, whole) and b"==" in head
    if start.startswith(b"Package ") and b"Version" in start[:200]:
        return _all_lines_match(head, _LISTED, whole)
    return False


def csv_columns(line: bytes) -> list[str]:
    """Return the column names, without units, in a header of nvidia-smi's CSV; empty for any other line."""
    matches = [_COLUMN.fullmatch(part) for part in line.rstrip(b"\r").split(b", ")]
    names = [match[1] for match in matches if match is not None]
    return (
        [name.decode() for name in names]
        if len(names) == len(matches) and any(map(_NVIDIA_COLUMN.fullmatch, names))
        else []
    )


def is_gpu_query(data: bytes) -> bool:
    """Whether this begins as nvidia-smi's CSV does, or with its message for a host without GPU."""
    start = data[:4096].lstrip()
    return bool(csv_columns(start.split(b"\n", 1)[0])) or start.startswith(_NO_DEVICES)


def _is_csv(head: bytes, whole: bool) -> bool:
    """Whether each line has as many values as the header before it, or is the message for a host without GPU."""
    lines = head.strip().split(b"\n")
    width = 0
    for line in lines if whole else lines[:-1]:
        width = len(csv_columns(line)) or width
        if line.strip() and not line.startswith(_NO_DEVICES) and line.count(b", ") + 1 != width:
            return False
    return True


def _is_environ(head: bytes, whole: bool) -> bool:
    parts = head.strip(b"\0").split(b"\0")
    if not whole:
        parts = parts[:-1]
    return (
        len(parts) >= _MIN_LINES
        and all(_PAIR.match(part) and b"=" in part for part in parts)
        and _TYPICAL_VARIABLE.search(head) is not None
    )


def _all_lines_match(
    head: bytes,
    pattern: re.Pattern[bytes],
    whole: bool,
    *,
    typical: re.Pattern[bytes] | None = None,
    strict: bool = False,
) -> bool:
    """Whether every line matches; shell functions that `env` prints over several lines are skipped."""
    lines = head.replace(b"\r", b"").split(b"\n")
    lines = lines if whole else lines[:-1]
    in_function = False
    count = 0
    for line in lines:
        if in_function or line.startswith(b"BASH_FUNC_"):
            in_function = line != b"}"
        elif line.strip():
            count += 1
            if pattern.match(line) is None or (strict and _LOG_LINE.search(line)):
                return False
    return count >= _MIN_LINES and (typical is None or not whole or typical.search(head) is not None)
