"""Addresses of GPUs on the PCI bus, as (domain, bus, device), from the forms of the kernel and of NCCL."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

PciAddress = tuple[int, int, int]
_WRITTEN = lazy_re(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.(\d))?")


def read_pci_address(text: str) -> PciAddress | None:
    """Return the address in `0000:9b:00.0`; the domain and the function may be missing."""
    parts = _WRITTEN.fullmatch(text)
    return None if parts is None else (int(parts[1] or "0", 16), int(parts[2], 16), int(parts[3], 16))


def format_pci_address(text: str) -> str:
    """Return `0000:9b:00.0` for each form of this address that kernels and nvidia-smi write, other text as it is."""
    parts = _WRITTEN.fullmatch(text)
    if parts is None or not (parts[1] or parts[4]) or len(parts[2] + parts[3]) != 4:
        return text
    return f"{int(parts[1] or '0', 16):04x}:{parts[2]}:{parts[3]}.{parts[4] or '0'}".lower()


def read_nccl_address(text: str) -> PciAddress:
    """Return NCCL's address, one hexadecimal number of domain, bus, device (8 bits each) and function (4 bits)."""
    number = int(text, 16)
    return number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF
