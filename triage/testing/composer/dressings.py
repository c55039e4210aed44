"""Dressings: how collectors, container runtimes, editors and archives rewrite log files. None changes what happened."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from triage.testing.composer import file_dressings as files
from triage.testing.composer.file_dressings import Dress, Pack
from triage.testing.composer.model import LogLine, World
from triage.testing.composer.worlds import is_container
from triage.testing.log_wrappers import WRAPPERS, Record, Wrap, wrap_cri

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # what Kubernetes draws names from
_SHORT_CHUNK = 1024  # max_container_log_line_size of containerd, set to less than its default


@dataclass(frozen=True, slots=True)
class Dressing:
    """One way to rewrite log files. `fits_any`: also files that do not come from the job's processes, as the kernel's.

    `pack` replaces all files of the job by others, as an archive.
    """

    name: str
    dress: Dress
    fits_any: bool = False
    pack: Pack | None = None


def wrapped_by(wrap: Wrap, *, suffix: str = "", first: str = "", drops_empty: bool = False) -> Dress:
    """Return a dressing that wraps each line; the file gets a suffix and a text before its first line.

    `drops_empty`: the collector does not store empty lines.
    """

    def dress(path: str, lines: Sequence[LogLine], world: World, rng: random.Random) -> tuple[str, bytes]:
        chosen = [line for line in lines if line.text or not drops_empty]
        text = "".join(f"{line}\n" for line in wrap(make_records(chosen, world, rng)))
        return path + suffix, (first + text).encode("utf-8", "surrogateescape")

    return dress


def make_records(lines: Sequence[LogLine], world: World, rng: random.Random) -> list[Record]:
    """Return what a collector knows of each line. It reads a line a moment after it was written, in order."""
    hosts = {line.host for line in lines} - {""}
    fallback = hosts.pop() if len(hosts) == 1 else world.hosts[0]
    daemon_pid = random.Random(f"{world.start} daemon").randrange(700, 60_000)
    records, last = [], 0
    for line in lines:
        last = max(last + 3, int((world.start + line.at) * 1_000_000) + rng.randrange(150, 4_000))
        host = line.host or fallback
        node = world.hosts.index(host) if host in world.hosts else 0
        pod = name_pod(world, node)
        records.append(Record(line.text, last, host, pod, node, line.stream, world.zone, daemon_pid + node))
    return records


def name_pod(world: World, node: int) -> str:
    """Return the name of the pod of a node: its host name where that is a pod's, else as of an indexed Job."""
    host = world.hosts[node]
    if is_container(host) and "-" in host:
        return host
    letters = random.Random(f"{world.start} pod {node}").choices(_SUFFIX_LETTERS, k=5)
    return f"{world.script.rpartition('/')[2].removesuffix('.py').replace('_', '-')}-{node}-{''.join(letters)}"


def name_hosts_otherwise(world: World) -> dict[str, str]:
    """Return other names of hosts with the hosts: addresses, and what collectors call pods and containers."""
    names: dict[str, str] = {}
    for node, host in enumerate(world.hosts):
        address = f"10.0.{node}.{10 + node}"
        names |= dict.fromkeys((name_pod(world, node), f"trainer-{node + 1}", f"train/algo-{node + 1}", address), host)
    return names


DRESSINGS: tuple[Dressing, ...] = (
    Dressing("as written", files.as_written, fits_any=True),
    Dressing("docker json-file", wrapped_by(WRAPPERS["docker json-file"])),
    Dressing("docker logs -t", wrapped_by(WRAPPERS["docker logs -t"])),
    Dressing("docker compose", wrapped_by(WRAPPERS["docker compose"])),
    Dressing("CRI", wrapped_by(wrap_cri)),
    Dressing("CRI, cut", wrapped_by(partial(wrap_cri, width=_SHORT_CHUNK))),
    Dressing("kubectl --timestamps", wrapped_by(WRAPPERS["kubectl --timestamps"])),
    Dressing("kubectl --prefix", wrapped_by(WRAPPERS["kubectl --prefix"])),
    Dressing("stern", wrapped_by(WRAPPERS["stern"])),
    Dressing("Fluent Bit", wrapped_by(WRAPPERS["Fluent Bit"], suffix=".json")),
    Dressing("GitHub Actions", wrapped_by(WRAPPERS["GitHub Actions"], first="\ufeff")),
    Dressing("GitLab", wrapped_by(WRAPPERS["GitLab"])),
    Dressing("Jenkins", wrapped_by(WRAPPERS["Jenkins"])),
    Dressing("journald JSON", wrapped_by(WRAPPERS["journald JSON"], drops_empty=True)),
    Dressing("journalctl -o short-iso", wrapped_by(WRAPPERS["journalctl -o short-iso"], drops_empty=True)),
    Dressing("syslog", wrapped_by(WRAPPERS["syslog"], drops_empty=True)),
    Dressing("moreutils ts", wrapped_by(WRAPPERS["moreutils ts"])),
    Dressing("ISO ts", wrapped_by(WRAPPERS["ISO ts"])),
    Dressing("PAI DLC", wrapped_by(WRAPPERS["PAI DLC"])),
    Dressing("CloudWatch export", wrapped_by(WRAPPERS["CloudWatch export"])),
    Dressing("aws logs tail", wrapped_by(WRAPPERS["aws logs tail"])),
    Dressing("aws logs get-log-events", wrapped_by(WRAPPERS["aws logs get-log-events"], suffix=".json")),
    Dressing("CRLF", files.with_crlf, fits_any=True),
    Dressing("UTF-16", files.as_utf16, fits_any=True),
    Dressing("gzip", files.as_gzip, fits_any=True),
    Dressing("xz", files.as_xz, fits_any=True),
    Dressing("bzip2", files.as_bzip2, fits_any=True),
    Dressing("line numbers", files.with_line_numbers, fits_any=True),
    Dressing("blank lines", files.with_blank_lines, fits_any=True),
    Dressing("colours", files.with_colours),
    Dressing("progress bars", files.with_progress_bars),
    Dressing("tar.gz", files.as_written, fits_any=True, pack=files.pack_tar),
    Dressing("zip", files.as_written, fits_any=True, pack=files.pack_zip),
)
"""The dressings, in a fixed order."""
