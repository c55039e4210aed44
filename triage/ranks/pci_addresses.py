"""Addresses of GPUs on the PCI bus, as (domain, bus, device), from the forms of the kernel and of NCCL."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

PciAddress = tuple[int, int, int]
_WRITTEN = lazy_re(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.\d)?")


def read_pci_address(text: str) -> PciAddress | None:
    """Return the address in `0000:9b:00.0`; the domain and the function may be missing."""
    parts = _WRITTEN.fullmatch(text)
    return None if parts is None else (int(parts[1] or "0", 16), int(parts[2], 16), int(parts[3], 16))


def read_nccl_address(text: str) -> PciAddress:
    """Return NCCL's address, one hexadecimal number of domain, bus, device (8 bits each) and function (4 bits)."""
    number = int(text, 16)
    return number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF
