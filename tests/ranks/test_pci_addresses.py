"""triage.ranks.pci_addresses"""

from __future__ import annotations

import pytest

from triage.ranks.pci_addresses import PciAddress, format_pci_address, read_nccl_address, read_pci_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:9b:00.0", (0, 0x9B, 0)),
        ("0001:9b:1f", (1, 0x9B, 0x1F)),
        ("00010000:07:00.0", (0x10000, 7, 0)),
        ("9b:00", (0, 0x9B, 0)),
        ("9b", None),
        ("0000:9b:00.0 x", None),
        ("0000:9b:00.00", None),
    ],
)
def test_an_address_of_the_kernel_is_read(text: str, address: PciAddress | None) -> None:
    """Domain and function may be missing."""
    assert read_pci_address(text) == address


@pytest.mark.parametrize(
    ("text", "address"), [("9b000", (0, 0x9B, 0)), ("19b1f1", (1, 0x9B, 0x1F)), ("7000", (0, 7, 0)), ("0", (0, 0, 0))]
)
def test_an_address_of_nccl_is_read(text: str, address: PciAddress) -> None:
    """One number; its last digit, the function, is left out."""
    assert read_nccl_address(text) == address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0000:9b:00", "0000:9b:00.0"),  # of a kernel's Xid
        ("00000000:9B:00.0", "0000:9b:00.0"),  # of nvidia-smi
        ("9b:00.0", "0000:9b:00.0"),  # of lspci
        ("0000:9b:00.1", "0000:9b:00.1"),  # the second port of an adapter
        ("00010000:07:00.0", "10000:07:00.0"),
        *((text, text) for text in ("3", "9b:00", "1:0:0", "mlx5_0", "mlx5_0:1", "0000:9b:00.0 x", "")),
    ],
)
def test_an_address_has_one_form(text: str, expected: str) -> None:
    """Domain, function and case are written in one way; names, indices and what may be a time stay."""
    assert format_pci_address(text) == expected
