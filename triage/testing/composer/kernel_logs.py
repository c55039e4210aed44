"""The kernel's logs of the nodes, in the forms in which people and tools store them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triage.testing.composer.model import LogLine, Story, World
from triage.testing.composer.noise import find_failure
from triage.testing.composer.worlds import is_container

_Head = Callable[[World, str, float, float], str]


@dataclass(frozen=True, slots=True)
class KernelForm:
    """A path, in which {host} is replaced, and what stands before each line by world, host, time and uptime."""

    path: str
    head: _Head
    weight: int
    names_host_in_lines: bool = True


def _uptime(world: World, host: str, at: float, uptime: float) -> str:
    return f"[{uptime:12.6f}] "


def _dmesg_time(world: World, host: str, at: float, uptime: float) -> str:
    return f"[{world.stamp(at, '%a %b %e %H:%M:%S %Y')}] "


def _dmesg_iso(world: World, host: str, at: float, uptime: float) -> str:
    return f"{world.stamp(at, '%Y-%m-%dT%H:%M:%S,%f')}{_offset(world)} "


def _journal(world: World, host: str, at: float, uptime: float) -> str:
    return f"{world.stamp(at, '%b %d %H:%M:%S')} {host} kernel: "


def _syslog(world: World, host: str, at: float, uptime: float) -> str:
    return f"{world.stamp(at, '%b %e %H:%M:%S')} {host.partition('.')[0]} kernel: [{uptime:12.6f}] "


def _syslog_iso(world: World, host: str, at: float, uptime: float) -> str:
    return f"{world.stamp(at, '%Y-%m-%dT%H:%M:%S.%f')}{_offset(world)} {host.partition('.')[0]} kernel: "


FORMS: tuple[KernelForm, ...] = (
    KernelForm("{host}/dmesg.txt", _uptime, 1, names_host_in_lines=False),
    KernelForm("{host}/dmesg.txt", _dmesg_time, 4, names_host_in_lines=False),
    KernelForm("dmesg-{host}.log", _dmesg_time, 4, names_host_in_lines=False),
    KernelForm("{host}/dmesg-iso.log", _dmesg_iso, 2, names_host_in_lines=False),
    KernelForm("{host}/journalctl-k.log", _journal, 4),
    KernelForm("kernel/{host}.log", _journal, 3),
    KernelForm("{host}/var/log/kern.log", _syslog, 4),
    KernelForm("kern.log", _syslog, 3),
    KernelForm("syslog/kern.log", _syslog_iso, 2),
)

# What the kernels of healthy machines write now and then, and what NVIDIA's driver writes once, at boot.
_ORDINARY = (
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{hex}: link becomes ready",
    "docker0: port {small}(veth{hex}) entered blocking state",
    "docker0: port {small}(veth{hex}) entered forwarding state",
    "device veth{hex} entered promiscuous mode",
    "perf: interrupt took too long ({large} > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
    "EXT4-fs (nvme{small}n1p1): mounted filesystem with ordered data mode. Quota mode: none.",
    'audit: type=1400 audit(1717.{small}:{large}): apparmor="STATUS" operation="profile_load" profile="unconfined" '
    'name="docker-default" pid={large} comm="apparmor_parser"',
    "TCP: request_sock_TCP: Possible SYN flooding on port {large}. Sending cookies.  Check SNMP counters.",
    "systemd-journald[{large}]: Data hash table of /var/log/journal/system.journal has a fill level at 75.0 "
    "(174765 of 233016 items), suggesting rotation.",
    "workqueue: drain_vmap_area_work hogged CPU for >10000us {small} times, consider switching to WQ_UNBOUND",
    "process 'local/bin/python3' started with executable stack",
    "hrtimer: interrupt took {large} ns",
    "overlayfs: idmapped layers are currently not supported",
    "SELinux: policy capability nnp_nosuid_transition=1",
)  # fmt: skip
_AT_BOOT = (
    "nvidia-uvm: Loaded the UVM driver, major device number 51{small}.",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 23{small}",
    "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  550.90.07",
    "mlx5_core 0000:{small}a:00.0: Port module event: module 0, Cable plugged",
)


def write_kernel_logs(story: Story, world: World, rng: random.Random) -> Mapping[str, tuple[LogLine, ...]]:
    """Return the logs of the nodes of which the story has kernel lines, and in some jobs those of healthy nodes."""
    nodes = _choose_nodes(story, world, rng)
    forms = [form for form in FORMS if not (form.names_host_in_lines and any(map(is_container, world.hosts)))]
    form = rng.choices(forms, [form.weight for form in forms])[0]
    logs: dict[str, list[LogLine]] = {}
    for node in nodes:
        host, uptime = world.hosts[node], rng.uniform(20_000, 9_000_000)  # at the start of the job
        lines = logs.setdefault(form.path.format(host=host), [])
        lines += [
            LogLine(at, form.head(world, host, at, uptime + at) + text, host)
            for at, text in [*_kernel_lines(story, node), *_ordinary_lines(story, world, uptime, rng)]
        ]
    return {path: tuple(sorted(lines, key=lambda line: line.at)) for path, lines in logs.items()}


def _choose_nodes(story: Story, world: World, rng: random.Random) -> list[int]:
    own = {line.writer.number for line in story.lines if line.writer.kind == "kernel"}
    share = 0.4 if own else 0.15
    return list(range(len(world.hosts))) if rng.random() < share else sorted(own)


def _kernel_lines(story: Story, node: int) -> list[tuple[float, str]]:
    own = sorted((line for line in story.lines if line.writer.kind == "kernel" and line.writer.number == node),
                 key=lambda line: line.at)  # fmt: skip
    return [(line.at, text) for line in own for text in line.text.split("\n")]


def _ordinary_lines(story: Story, world: World, uptime: float, rng: random.Random) -> list[tuple[float, str]]:
    """Return what a healthy kernel writes at boot, and from an hour before the job until something fails."""
    end = min(find_failure(story), max(line.at for line in story.lines))
    at_boot = _AT_BOOT if world.backend == "nccl" else ()
    shown = [(20 - uptime + number / 9, text) for number, text in enumerate(at_boot)]
    shown += [(rng.uniform(-3600, end), rng.choice(_ORDINARY)) for _ in range(rng.randrange(3, 14))]
    return [
        (at, text.format(hex=f"{rng.getrandbits(28):07x}", small=rng.randrange(1, 9), large=rng.randrange(2501, 9999)))
        for at, text in shown
    ]


def _offset(world: World) -> str:
    hours, minutes = divmod(abs(world.zone) // 60, 60)
    return f"{'-' if world.zone < 0 else '+'}{hours:02d}:{minutes:02d}"
