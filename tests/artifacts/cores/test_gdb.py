"""gdb's answers → threads, and the links to the files that it may read."""

from __future__ import annotations

from pathlib import Path

from tests.artifacts.cores.factories import CODE, STACK, CoreFile, CoreThread, StoredRange
from triage.artifacts.cores import gdb
from triage.artifacts.cores.local_files import LocalFiles
from triage.stacks.model import HANDLER

LIBRARY = 0x7F00_0000_0000
CORE = CoreFile(
    threads=[CoreThread(77), CoreThread(78)],
    ranges=[StoredRange(LIBRARY, b"\x7fELF" + bytes(4092), CODE), StoredRange(STACK)],
    mappings=[(LIBRARY, LIBRARY + 4096, 0, "/lib/libc.so.6")],
).parsed()


def test_frames_of_a_signal_handler_and_without_an_address() -> None:
    """The handler is a frame of its own, the frame below it is no call, and an address that gdb lacks is left out."""
    text = (
        '^done,threads=[{id="1",target-id="Thread 0x7f (LWP 77)",name="python"}]\n'
        f'1^done,stack=[frame={{level="0",addr="{LIBRARY + 16:#x}",func="raise"}},'
        f'frame={{level="1",func="{HANDLER}"}},frame={{level="2",addr="{LIBRARY + 32:#x}",func="read"}},'
        'frame={level="3",addr="<unavailable>",func="??"}]\n'
    )
    (thread,), remarks = gdb.parse_output(text, CORE)
    assert [frame.function for frame in thread.frames] == ["raise", HANDLER, "read", ""]
    assert [frame.offset for frame in thread.frames] == [16, None, 32, None]
    assert (thread.tid, thread.crashed, thread.frames[3].address, remarks) == (77, True, None, ())


def test_answers_that_are_no_records_are_left_out() -> None:
    """A line that ends within a text and an item that is no frame are left out; the other threads are read."""
    text = (
        '1^done,stack=[frame={level="0",addr="0x00007f00\n'
        f'2^done,stack=["nothing",frame={{level="0",addr="{LIBRARY + 8:#x}",func="wait"}}]\n'
    )
    (thread,), _ = gdb.parse_output(text, CORE)
    assert (thread.id, thread.tid, thread.crashed) == ("2", 78, False)
    assert [frame.function for frame in thread.frames] == ["wait"]


def test_files_with_one_name_are_linked_once(tmp_path: Path) -> None:
    """Two files with one name have each their path, the first stands for the name, and a program is optional."""
    files = {}
    for number in range(2):
        file = tmp_path / f"files{number}" / "libtrain.so"
        file.parent.mkdir()
        file.write_bytes(b"\x7fELF")
        files[f"/opt/{number}/libtrain.so"] = str(file)
    assert gdb.link_files(tmp_path, CORE, LocalFiles(files)) is None
    assert [(tmp_path / "root/opt" / name / "libtrain.so").resolve().parent.name for name in "01"] == [
        "files0",
        "files1",
    ]
    assert (tmp_path / "flat/libtrain.so").resolve().parent.name == "files0"
