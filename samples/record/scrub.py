"""Replace private strings of the recording machine: working directory, virtual environment, host name, address."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

PRIVATE_PATHS = (b"/tmp/", b"/root/", b"/work/", b"/home/")
PUBLIC_PATHS = (b"/home/user/", b"=/home/user\n", b"/tmp/torchelastic_", b"/tmp/spill-")


@dataclass(frozen=True)
class Scrubber:
    """The private paths of one recording, each with its public replacement."""

    paths: tuple[tuple[Path, str], ...]

    def scrub(self, data: bytes, host: str) -> bytes:
        """Return `data` without private strings; `host` replaces the name of this machine."""
        for private, public in self.paths:
            data = data.replace(str(private).encode(), public.encode())
        data = re.sub(
            rb"(host +: )localhost\b", rb"\g<1>" + host.encode(), data
        )  # torchrun prints this for a name without domain
        for name in host_names():
            data = re.sub(rb"(?<![\w./-])" + re.escape(name.encode()) + rb"(?![\w/-])", host.encode(), data)
        for number, address in enumerate(host_addresses(), start=1):
            data = re.sub(rb"(?<![\w.])" + re.escape(address.encode()) + rb"(?!\w)", f"10.0.0.{number}".encode(), data)
        return data


def find_private_text(data: bytes) -> list[str]:
    """Return the text around each private path that is left."""
    for public in PUBLIC_PATHS:
        data = data.replace(public, b"")
    return [
        data[max(0, at - 40) : at + 80].decode(errors="replace")
        for path in PRIVATE_PATHS
        if (at := data.find(path)) >= 0
    ]


def host_names() -> list[str]:
    """Return the names of this machine, the longest first."""
    return sorted({socket.getfqdn(), socket.gethostname()} - {"localhost"}, key=len, reverse=True)


def host_addresses() -> list[str]:
    """Return the addresses of this machine except those of the loopback."""
    addresses = {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.254", 9))  # a datagram socket: nothing is sent
        addresses.add(probe.getsockname()[0])
    return sorted(str(address) for address in addresses if not str(address).startswith(("127.", "::1")))
