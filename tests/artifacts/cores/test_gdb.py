"""gdb's answers → threads, and the links to the files that it may read."""

from __future__ import annotations

from pathlib import Path

import pytest

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


ANSWER = f'1^done,stack=[frame={{level="0",addr="{LIBRARY + 8:#x}",func="wait \\"x\\"",args=[]}}],state="stopped"'


def test_an_answer_that_is_cut_is_left_out() -> None:
    """Wherever gdb was stopped in its last line, that line is left out, and the search for its end ends."""
    before = ANSWER.replace("1^", "2^")
    for length in range(len(ANSWER)):
        threads, _ = gdb.parse_output(f"{before}\n{ANSWER[:length]}", CORE)
        # Cut behind the list of frames and before a comma, it is a whole answer.
        assert [thread.id for thread in threads] == (
            ["1", "2"] if ANSWER[length - 1 :].startswith("],state") else ["2"]
        )
    (thread,), _ = gdb.parse_output(ANSWER, CORE)
    assert [frame.function for frame in thread.frames] == ['wait "x"']


@pytest.mark.parametrize(
    "line",
    [
        '1^done,stack=[frame={level="0"}frame={level="1"}]',
        '1^done,stack=a[frame={level="0"}]',
        '1^done,stack=[frame={level"0"}]',
        '1^done,stack=[frame={level="0",args[]}]',
        '1^done,stack=[frame={level=,"0"}]',
        "1^done,stack=" + "[" * 9 + "]" * 9,
    ],
)
def test_an_answer_against_the_grammar_is_left_out(line: str) -> None:
    """Lines that no gdb writes, or that are nested deeper than any answer, give no thread."""
    assert gdb.parse_output(line, CORE)[0] == ()


def test_an_item_that_is_no_frame_is_left_out() -> None:
    """The other frames are read."""
    text = f'2^done,stack=["nothing",frame={{level="0",addr="{LIBRARY + 8:#x}",func="wait"}}]'
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
