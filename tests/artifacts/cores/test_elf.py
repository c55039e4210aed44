"""Headers and notes of core files: what is damaged is left out and named."""

from __future__ import annotations

import struct

import pytest

from tests.artifacts.cores.factories import CODE, FILE, CoreBytes, CoreFile, StoredRange, mapped_files
from triage.artifacts.cores import elf
from triage.artifacts.cores.model import CoreError

LIBRARY = (0x7F00_0000_0000, 0x7F00_0000_1000, 0, "/opt/lib/libtrain.so")
PROGRAM = (0x400000, 0x402000, 0, "/opt/app/train")


def test_core_that_ends_within_its_first_header() -> None:
    """A core of fewer bytes than the first header gives an error that says where it ends."""
    with pytest.raises(CoreError, match="ends within its first header") as error:
        elf.parse_core(CoreBytes(CoreFile().content()[:40]))
    assert error.value.hint


@pytest.mark.parametrize(
    ("description", "paths", "damage"),
    [
        (mapped_files([PROGRAM, LIBRARY]), ["/opt/app/train", "/opt/lib/libtrain.so"], ()),
        (mapped_files([PROGRAM, LIBRARY])[: 16 + 48 + 5], ["/opt/"], ("the list of mapped files is cut short",)),
        (mapped_files([PROGRAM, LIBRARY])[:40], [], ("the list of mapped files is damaged",)),
        (struct.pack("<QQ", 1 << 40, 4096), [], ("the list of mapped files is damaged",)),
        (struct.pack("<QQ", 0, 0), [], ("the list of mapped files is damaged",)),
        (bytes(8), [], ()),
    ],
    ids=["whole", "names-cut", "ranges-cut", "impossible-count", "no-page-size", "empty"],
)
def test_damaged_list_of_mapped_files(description: bytes, paths: list[str], damage: tuple[str, ...]) -> None:
    """Of a damaged list of mapped files only what is whole is read, and a note says so."""
    core = CoreFile(more_notes=[(FILE, description)]).parsed()
    assert [mapping.path for mapping in core.mappings] == paths
    assert core.notes == damage
    assert core.threads[0].tid == 77


@pytest.mark.parametrize("stored", [7, 64, 96])
def test_module_with_a_truncated_first_page(stored: int) -> None:
    """A library whose first page is stored only in part has neither bias nor build-id, and is still a module."""
    page = CoreFile().content()[:stored]  # the header of any ELF file, with its program headers behind it
    core = CoreFile(mappings=[LIBRARY], ranges=[StoredRange(LIBRARY[0], page, CODE, 0x1000)]).parsed()
    (module,) = core.modules
    assert (module.path, module.bias, module.build_id) == ("/opt/lib/libtrain.so", LIBRARY[0], "")
