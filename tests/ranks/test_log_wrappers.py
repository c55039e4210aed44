"""triage.ranks.log_wrappers and triage.ranks.layouts"""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.ranks.grammars import BY_START
from triage.ranks.layouts import PLAIN, detect_layout
from triage.ranks.log_wrappers import (
    LOG_WRAPPERS,
    LogWrapper,
    detect_wrapper,
    is_journal_export,
    join_pieces,
    json_forms,
    unescape_json,
    unwrap_json,
    unwrap_line,
    with_json_forms,
)
from triage.ranks.prefix import ParsedLine, parse_prefix
from triage.records.text import Line, Text

TEXTS = st.text(st.characters(exclude_characters="\n\r\0\x1b", exclude_categories=["Cs"]), max_size=30)


def lines_of(data: bytes) -> list[Line]:
    """Return all lines of a file by its layout."""
    text = Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, detect_layout(data))
    return list(text.lines_from(0, len(data)))


@pytest.mark.parametrize("wrapper", LOG_WRAPPERS, ids=lambda wrapper: wrapper.name)
def test_the_sample_of_a_wrapper_is_unwrapped(wrapper: LogWrapper) -> None:
    """The messages come out at their lines, with the origin that the wrapper states."""
    data = wrapper.sample.encode()
    assert detect_layout(data).wrapper == wrapper.kind
    lines = lines_of(data)
    assert [line.parsed.text for line in lines][:2] == ["step 3", "step 4"]
    assert lines[0].parsed.origin.time == pytest.approx(1_795_230_465, abs=1)
    for part in ("host", "pid", "rank", "stream"):
        if part in wrapper.provides.split(";")[0].replace(",", "").split():
            assert getattr(lines[0].parsed.origin, part) is not None or (
                wrapper.name.startswith("JSON") and part != "rank"
            )


def test_plain_files_are_not_wrapped() -> None:
    """A file without log wrapper and file prefix has the plain layout."""
    assert not detect_layout(b"step 3\n[rank3]: boom\n" * 30).is_wrapped
    assert detect_layout(b"") is PLAIN


@given(TEXTS)
def test_json_strings_are_unescaped(text: str) -> None:
    """Docker, journald and Python escape differently."""
    for form in (
        json.dumps(text),
        json.dumps(text, ensure_ascii=False),
        json.dumps(text).replace("<", "\\u003c").replace("&", "\\u0026"),
    ):
        assert unescape_json(form[1:-1]) == text


@given(TEXTS.filter(str.strip))
def test_a_literal_is_scanned_for_in_all_json_forms(text: str) -> None:
    """Every JSON form of a literal is scanned for, and stands for the literal."""
    forms, originals = with_json_forms((text,))
    assert len(forms) == len(originals) == len(set(forms))
    assert set(originals) == {text}
    assert json.dumps(text)[1:-1] in forms
    assert json.dumps(text, ensure_ascii=False)[1:-1] in forms
    assert all(unescape_json(form) == text for form in json_forms(text))


@given(TEXTS, st.integers(0, 200))
def test_a_cut_off_message_is_unwrapped(text: str, length: int) -> None:
    """Of a very long line only the start is known."""
    line = '{"log":' + json.dumps(text * 5)
    messages = unwrap_json(parse_prefix(line[: max(8, min(length, len(line) - 1))]), 2026)
    assert messages is None or all("\\u" not in message[:-6] or "\\" in text for message, _ in messages)


def test_json_without_a_message_is_text() -> None:
    """Metrics and settings in JSON are plain text."""
    assert unwrap_json(parse_prefix('{"step": 3, "loss": 0.1}'), 2026) is None
    assert unwrap_json(parse_prefix("step {3}"), 2026) is None
    assert unwrap_json(parse_prefix("{broken"), 2026) is None


def test_a_traceback_in_a_json_record_is_unwrapped() -> None:
    """A JSON logger writes it as one string. Its lines are separate lines with ascending offsets, behind CRI too."""
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: boom'
    record = json.dumps({"time": "2026-11-21T03:07:45Z", "rank": 3, "message": "failed", "exc_info": trace}).encode()
    for before in (b"", b"2026-11-21T03:07:45.372001123Z stderr F "):
        lines = lines_of((before + record + b"\n") * 3)
        assert [line.parsed.text for line in lines[:4]] == ["failed", *trace.split("\n")]
        assert {line.parsed.origin.rank for line in lines} == {3}
        assert [line.parsed.opens_record for line in lines[:4]] == [True, False, False, False]
        assert [line.offset for line in lines] == sorted({line.offset for line in lines})
        assert all(one.end <= other.offset for one, other in itertools.pairwise(lines))


@pytest.mark.parametrize(("levels", "is_unwrapped"), [(1, True), (3, True), (4, False)])
def test_records_in_records_are_unwrapped(levels: int, is_unwrapped: bool) -> None:
    """A cloud's record of a program's record has its lines and its rank; three levels are unwrapped, not four."""
    record = json.dumps({"global_rank": 2, "message": "failed\nRuntimeError: boom"})
    for _ in range(levels - 1):
        record = json.dumps({"timestamp": 1795230465123, "pid": 7, "message": record})
    messages = unwrap_json(ParsedLine(record, "", False, (), Origin()), 2026)
    assert messages is not None
    assert ([text for text, _ in messages] == ["failed", "RuntimeError: boom"]) is is_unwrapped
    if is_unwrapped:
        assert {(parsed.origin.rank, parsed.origin.pid) for _, parsed in messages} == {(2, 7 if levels > 1 else None)}


def test_docker_messages_are_unescaped() -> None:
    """Prefixes inside the message count, and HTML escapes are removed."""
    text = '[default3]:[rank7]: expected \\u003cTensor\\u003e \\u0026 got \\"None\\"\\n'
    line = f'{{"log":"{text}","stream":"stdout","time":"2026-11-21T03:07:45Z"}}\n'
    [line, *_] = lines_of(line.encode() * 3)
    assert line.parsed.text == 'expected <Tensor> & got "None"'
    assert (line.parsed.origin.rank, line.parsed.origin.local_rank, line.parsed.origin.stream) == (7, 3, "stdout")


def test_byte_lists_of_the_journal_are_decoded() -> None:
    """journald writes text with control characters as a list of numbers."""
    message = list(b"\x1b[31mboom")
    [line, *_] = lines_of((json.dumps({"MESSAGE": message, "_PID": "7"}) + "\n").encode() * 3)
    assert line.parsed.text == "boom"


@given(
    st.lists(
        st.tuples(st.sampled_from(["stdout", "stderr"]), st.text("ab ", min_size=1, max_size=12)),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_pieces_of_two_streams_are_joined(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    """However lines are cut and streams mixed, each line comes out once and whole, for each of its pieces."""
    queues: dict[str, list[tuple[str, str, str]]] = {"stdout": [], "stderr": []}
    for stream, line in lines:
        size = data.draw(st.integers(1, 6))
        pieces = [line[at : at + size] for at in range(0, len(line), size)]
        queues[stream] += [
            (stream, "F" if number + 1 == len(pieces) else "P", piece) for number, piece in enumerate(pieces)
        ]
    order = []
    while any(queues.values()):
        queue = data.draw(st.sampled_from([queue for queue in queues.values() if queue]))
        order.append(queue.pop(0))
    raw = [f"2026-11-21T03:07:45.1Z {stream} {flag} {piece}".encode() for stream, flag, piece in order]
    whole = b"\n".join(raw) + b"\n"
    text = Text("0.log", lambda offset, length: whole[offset : offset + length], len(whole), 2026, detect_layout(whole))
    parsed = [(line.parsed.origin.stream, line.parsed.text) for line in text.lines_from(0, len(whole))]
    assert sorted(parsed) == sorted(lines)
    at = 0
    for piece in raw:
        [whole_line] = text.lines_at(at, at + len(piece))
        assert (whole_line.parsed.origin.stream, whole_line.parsed.text) in lines
        at += len(piece) + 1


def test_messages_of_json_with_a_field_a_line_have_their_prefixes() -> None:
    """The other fields around each message do not hide what most messages begin with."""
    messages = [f"trainer/{node} [1]:step {step}" for step in range(6) for node in (0, 1)]
    events = [{"timestamp": 1795230465123, "message": message, "ingestionTime": 1795230465124} for message in messages]
    parsed = [line.parsed for line in lines_of(json.dumps({"events": events}, indent=4).encode())]
    assert [one.text for one in parsed][:2] == ["step 0", "step 0"]
    assert (parsed[1].origin.host, parsed[1].origin.local_rank) == ("trainer/1", 1)


@pytest.mark.parametrize("records", range(20, 420, 20))
def test_one_field_a_line_is_seen_whatever_the_number_of_records(records: int) -> None:
    """The sampled lines fall on each of the four lines of a record."""
    record = '    {\n        "timestamp": 1795230465123,\n        "message": "step 3"\n    },\n'
    assert detect_layout(f'{{\n    "events": [\n{record * records}'.encode()).wrapper == "json-lines"


@pytest.mark.parametrize(("lines", "is_json"), [(54, True), (60, False)])
def test_a_log_that_prints_a_few_objects_is_not_wrapped(lines: int, is_json: bool) -> None:
    """Of twenty lines, one at least is a message."""
    data = '    "message": "step 3"\n' * 3 + "step 3\n" * lines
    assert (detect_layout(data.encode()).wrapper == "json-lines") is is_json


@pytest.mark.parametrize("messages", [2, 20])
def test_a_prefix_stands_before_json_and_other_lines(messages: int) -> None:
    """What a collector writes before each line is removed from both, also where nearly all lines are JSON."""
    json_lines = [
        f'train-worker-1 pytorch {{"message": "step {step}", "rank": {step % 4}}}' for step in range(messages)
    ]
    others = [f"train-worker-1 pytorch [rank{rank}]: done" for rank in range(4)]
    layout = detect_layout("\n".join([*json_lines, *others, ""]).encode())
    assert layout.wrapper == "json"
    assert parse_prefix(others[3], table=layout.table).origin.rank == 3
    assert parse_prefix(json_lines[0], table=layout.table).text.startswith("{")


def read_record(**fields: object) -> ParsedLine:
    """Return what a JSON record with these fields says."""
    messages = unwrap_json(parse_prefix(json.dumps({"message": "x", **fields})), 2026)
    assert messages is not None
    return messages[0][1]


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-11-21T03:07:45Z", 1_795_230_465.0),
        (1795230465, 1_795_230_465.0),
        (1795230465.5, 1_795_230_465.5),
        (1795230465500, 1_795_230_465.5),
        ("1795230465500000", 1_795_230_465.5),
        ("1795230465500000000", 1_795_230_465.5),
        (17952304655, None),
        ("soon", None),
    ],
)
def test_times_of_records_are_read(value: object, time: float | None) -> None:
    """With a zone, or as seconds, milliseconds, microseconds or nanoseconds since 1970."""
    assert read_record(timestamp=value).origin.time == time


@pytest.mark.parametrize(
    ("value", "rank"),
    [(3, 3), ("3", 3), (999999999, 999999999), (9999999999, None), (-1, None), ("x", None), (1.5, None)],
)
def test_ranks_of_records_are_read(value: object, rank: int | None) -> None:
    """Whole numbers of at most nine digits."""
    assert read_record(rank=value).origin.rank == rank


def test_the_writer_of_a_record_is_its_process() -> None:
    """Of the journal, which carries the lines of many; only the record of a program's own logger opens one."""
    journal = unwrap_json(parse_prefix('{"MESSAGE": "a\\nb", "_PID": "412", "_HOSTNAME": "n1"}'), 2026)
    assert journal is not None
    assert [(text, parsed.writer, parsed.opens_record, parsed.origin.host) for text, parsed in journal] == [
        ("a", "[412]", False, "n1"),
        ("b", "[412]", False, "n1"),
    ]
    program = unwrap_json(parse_prefix('{"message": "a\\nb\\n", "pid": 412}'), 2026)
    assert program is not None
    assert [(text, parsed.writer, parsed.opens_record, parsed.origin.pid) for text, parsed in program] == [
        ("a", "", True, 412),
        ("b", "", False, 412),
    ]


def test_errors_of_a_record_are_shown_once() -> None:
    """One that is a part of another one, or equal to an earlier one, is left out; so is an empty one."""
    fields = {
        "message": "failed",
        "error": "boom",
        "exception": "ValueError: boom",
        "stack": "ValueError: boom",
        "err": " ",
    }
    messages = unwrap_json(parse_prefix(json.dumps(fields)), 2026)
    assert messages is not None
    assert [text for text, _ in messages] == ["failed", "ValueError: boom"]


@pytest.mark.parametrize(("stamps", "others", "kind"), [(3, 6, "stamp-behind"), (3, 7, ""), (2, 2, ""), (3, 0, "")])
def test_stamps_on_lines_of_their_own(stamps: int, others: int, kind: str) -> None:
    """Three at least, a third of all lines, and not all of them."""
    lines = ["step"] * others + ["2026-11-21T03:07:45.123Z"] * stamps
    assert detect_wrapper(lines, BY_START, "\n".join(lines).encode()) == kind
    assert detect_wrapper(lines[::-1], BY_START, b"") == kind.replace("behind", "before")


@pytest.mark.parametrize(("messages", "others", "kind"), [(3, 57, "json-lines"), (3, 58, ""), (2, 2, "")])
def test_fields_on_lines_of_their_own(messages: int, others: int, kind: str) -> None:
    """Three messages at least, and one in twenty lines."""
    lines = ['    "message": "step"'] * messages + ["x"] * others
    assert detect_wrapper([], BY_START, "".join(f"{line}\n" for line in lines).encode()) == kind


def test_the_journal_s_export_format() -> None:
    """By its cursor or its time at the start of a line."""
    assert is_journal_export(b"__CURSOR=s=1\n")
    assert is_journal_export(b"x\n__REALTIME_TIMESTAMP=1\n")
    assert not is_journal_export(b"x __CURSOR=s=1\n")


def test_a_message_of_the_export_format_may_be_binary() -> None:
    """Then its length stands before it, in eight bytes; its record has the host and the time."""
    record = b"_HOSTNAME=n1\n_PID=412\n__REALTIME_TIMESTAMP=1795230465500000\nMESSAGE\n"
    data = b"_HOSTNAME=n0\n\n" + record + b"\x04\0\0\0\0\0\0\0boom\n\n_HOSTNAME=n2\n"
    offset = data.index(b"\x04")
    messages = unwrap_line(
        "export", data[offset : offset + 12], offset, 2026, BY_START, lambda at, size: data[at : at + size]
    )
    assert messages is not None
    [(text, parsed)] = messages
    assert (text, parsed.origin.host, parsed.origin.pid, parsed.origin.time) == ("boom", "n1", 412, 1_795_230_465.5)
    for field in (b"_HOSTNAME=n1", b"MESSAGE", b""):
        assert unwrap_line("export", field, 0, 2026, BY_START, lambda at, size: b"") == []
    assert unwrap_line("export", b"step 3", 0, 2026, BY_START, lambda at, size: b"") is None


def test_pieces_of_docker_are_joined() -> None:
    """A whole line ends with a newline inside the string; the pieces of the other stream stand between."""
    piece = '{{"log":"{}","stream":"{}","time":"2026-11-21T03:07:45Z"}}\n'
    texts = (("a", "stderr"), ("x\\n", "stdout"), ("b\\n", "stderr"), ("c\\n", "stderr"))
    lines = lines_of("".join(piece.format(*text) for text in texts).encode())
    assert [(line.parsed.text, line.parsed.origin.stream) for line in lines] == [
        ("ab", "stderr"),
        ("x", "stdout"),
        ("c", "stderr"),
    ]


def test_empty_lines_are_no_stamps() -> None:
    """They count for neither side."""
    lines = ["step", "2026-11-21T03:07:45Z", ""] * 3 + [""] * 20
    assert detect_wrapper(lines, BY_START, b"") == "stamp-behind"


def test_json_stands_behind_a_pid_and_a_host_of_its_prefix() -> None:
    """Where the record has none of its own."""
    for record, pid, host in (({"message": "x"}, 77, "node1"), ({"message": "x", "pid": 5, "host": "n2"}, 5, "n2")):
        messages = unwrap_json(parse_prefix(f"Nov 21 03:07:45 node1 train[77]: {json.dumps(record)}"), 2026)
        assert messages is not None
        assert (messages[0][1].origin.pid, messages[0][1].origin.host) == (pid, host)


def read_export(data: bytes, message: bytes) -> ParsedLine | None:
    """Return what the record around a message in the export format says; None if the line is no message."""
    at = data.index(message)
    line = data[at : data.index(b"\n", at)]
    messages = unwrap_line("export", line, at, 2026, BY_START, lambda start, size: data[start : start + size])
    return messages[0][1] if messages else None


@pytest.mark.parametrize(("before", "is_message"), [(b"\n", True), (b"\n\n", True), (b"x\n", True), (b"x", False)])
def test_a_binary_message_may_be_at_the_start_of_the_data(before: bytes, is_message: bool) -> None:
    """Its field's name stands on a line of its own, of which nothing else is a part."""
    data = before + b"MESSAGE\n\x04\0\0\0\0\0\0\0boom\n_HOSTNAME=n1\n\n"
    parsed = read_export(data, b"\x04")
    assert (parsed is not None) is is_message


def test_fields_of_the_export_format_may_contain_equals_signs() -> None:
    """As command lines do: only the first one ends the name of the field."""
    data = b"_CMDLINE=train --lr=3 --steps=9\n_HOSTNAME=n1\nMESSAGE=step 3\n\n"
    parsed = read_export(data, b"MESSAGE=step")
    assert parsed is not None
    assert parsed.origin.host == "n1"


@pytest.mark.parametrize(("digits", "time"), [(17, 1e10), (18, None)])
def test_a_number_of_18_digits_is_no_time(digits: int, time: float | None) -> None:
    """Microseconds since 1970 have 16."""
    parsed = read_export(b"__REALTIME_TIMESTAMP=1".ljust(21 + digits, b"0") + b"\nMESSAGE=step 3\n\n", b"MESSAGE=step")
    assert parsed is not None
    assert parsed.origin.time == time


@pytest.mark.parametrize(("distance", "has_time"), [(4000, True), (4100, False)])
def test_a_stamp_far_behind_a_message_is_not_its_own(distance: int, has_time: bool) -> None:
    """It must stand in the next 4 KiB."""
    data = b"step 3\n" + b"x" * distance + b"\n2026-11-21T03:07:45Z\n"
    messages = unwrap_line("stamp-behind", b"step 3", 0, 2026, BY_START, lambda at, size: data[at : at + size])
    assert (messages is not None) is has_time


def test_what_is_scanned_for_is_scanned_for_once() -> None:
    """A literal that is the JSON form of another one stands for itself."""
    literals = ('say "no"', 'say \\"no\\"')
    scanned, stands_for = with_json_forms(literals)
    assert len(set(scanned)) == len(scanned)
    assert dict(zip(scanned, stands_for, strict=True))[literals[1]] == literals[1]


def test_a_piece_is_joined_behind_a_long_line_of_the_other_stream() -> None:
    """containerd cuts both streams at 16 KiB, and their pieces alternate."""
    stamp = b"2026-11-21T03:07:45.372001123Z"
    pieces = [
        stamp + b" stderr P " + b"a" * (1 << 14),
        stamp + b" stdout F " + b"b" * (1 << 14),
        stamp + b" stderr F end",
    ]
    data = b"\n".join(pieces) + b"\n"
    at = data.index(pieces[2])
    joined = join_pieces("cri", pieces[2], at, len(data), lambda start, size: data[start : start + size])
    assert joined == (pieces[0] + b"end", 0, len(data) - 1)


@pytest.mark.parametrize(
    ("detail", "texts"),
    [("loss moved by 0.7 in 14 steps", ["stopped", "loss moved by 0.7 in 14 steps"]), ("FailedMount", ["stopped"])],
)
def test_a_detail_of_a_record_is_shown_where_it_is_a_sentence(detail: str, texts: list[str]) -> None:
    """Details and reasons are texts of some programs, and codes of others."""
    messages = unwrap_json(parse_prefix(json.dumps({"msg": "stopped", "detail": detail})), 2026)
    assert messages is not None
    assert [text for text, _ in messages] == texts
