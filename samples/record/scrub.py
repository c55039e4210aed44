"""Replace what would tell where a sample was recorded: working directory, virtual environment, host name, address."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

TELLTALES = (b"/tmp/", b"/root/", b"/work/", b"/home/")
PUBLIC = (b"/home/user/", b"=/home/user\n", b"/tmp/torchelastic_", b"/tmp/spill-")


@dataclass(frozen=True)
class Scrubber:
    """The private paths of one recording and what stands for each of them."""

    paths: tuple[tuple[Path, str], ...]

    def clean(self, data: bytes, host: str) -> bytes:
        """Return `data` without private strings; `host` is what this machine is called in it."""
        for private, public in self.paths:
            data = data.replace(str(private).encode(), public.encode())
        data = re.sub(
            rb"(host +: )localhost\b", rb"\g<1>" + host.encode(), data
        )  # what torchrun makes of a name without domain
        for name in own_names():
            data = re.sub(rb"(?<![\w./-])" + re.escape(name.encode()) + rb"(?![\w/-])", host.encode(), data)
        for number, address in enumerate(own_addresses(), start=1):
            data = re.sub(rb"(?<![\w.])" + re.escape(address.encode()) + rb"(?!\w)", f"10.0.0.{number}".encode(), data)
        return data


def leaks(data: bytes) -> list[str]:
    """Return the places that still hold something private."""
    for public in PUBLIC:
        data = data.replace(public, b"")
    return [
        data[max(0, at - 40) : at + 80].decode(errors="replace") for tale in TELLTALES if (at := data.find(tale)) >= 0
    ]


def own_names() -> list[str]:
    """Return the names of this machine, the longest first."""
    return sorted({socket.getfqdn(), socket.gethostname()} - {"localhost"}, key=len, reverse=True)


def own_addresses() -> list[str]:
    """Return the addresses of this machine that are not of the loopback."""
    found = {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.254", 9))  # a datagram socket: nothing is sent
        found.add(probe.getsockname()[0])
    return sorted(str(address) for address in found if not str(address).startswith(("127.", "::1")))
