"""triage.ranks.envelopes and triage.ranks.layouts"""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.envelopes import ENVELOPES, Envelope, escaped, in_json, open_json, unescape
from triage.ranks.layouts import PLAIN, layout_of
from triage.ranks.prefix import parse
from triage.ranks.text import Line, Text

TEXTS = st.text(st.characters(exclude_characters="\n\r\0\x1b", exclude_categories=["Cs"]), max_size=30)


def lines_of(data: bytes) -> list[Line]:
    """All lines of a file, as its layout shows them."""
    text = Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, layout_of(data))
    return list(text.lines_from(0, len(data)))


@pytest.mark.parametrize("envelope", ENVELOPES, ids=lambda envelope: envelope.name)
def test_the_sample_of_an_envelope_is_opened(envelope: Envelope) -> None:
    """The messages come out, each with what the envelope says, at the line that it stands in."""
    data = envelope.sample.encode()
    assert layout_of(data).envelope == envelope.kind
    lines = lines_of(data)
    assert [line.parsed.text for line in lines][:2] == ["step 3", "step 4"]
    assert lines[0].parsed.origin.time == pytest.approx(1_795_230_465, abs=1)
    for word in ("host", "pid", "rank", "stream"):
        if word in envelope.says.split(";")[0].replace(",", "").split():
            assert getattr(lines[0].parsed.origin, word) is not None or (
                envelope.name.startswith("JSON") and word != "rank"
            )


def test_plain_files_cost_nothing() -> None:
    """A file without envelope or habit is read as ever."""
    assert not layout_of(b"step 3\n[rank3]: boom\n" * 30).dressed
    assert layout_of(b"") is PLAIN


@given(TEXTS)
def test_json_strings_come_back(text: str) -> None:
    """However a writer escaped it, the message is what was written; Docker, journald and Python escape differently."""
    for form in (
        json.dumps(text),
        json.dumps(text, ensure_ascii=False),
        json.dumps(text).replace("<", "\\u003c").replace("&", "\\u0026"),
    ):
        assert unescape(form[1:-1]) == text


@given(TEXTS.filter(str.strip))
def test_a_literal_is_sought_in_all_its_forms(text: str) -> None:
    """Whatever JSON makes of a literal is among what the scan looks for, and stands for the literal."""
    forms, meant = in_json((text,))
    assert len(forms) == len(meant) == len(set(forms))
    assert set(meant) == {text}
    assert json.dumps(text)[1:-1] in forms
    assert json.dumps(text, ensure_ascii=False)[1:-1] in forms
    assert all(unescape(form) == text for form in escaped(text))


@given(TEXTS, st.integers(0, 200))
def test_a_message_that_is_cut_off_is_opened_as_far_as_it_goes(text: str, length: int) -> None:
    """Of a very long line only the start is known."""
    line = '{"log":' + json.dumps(text * 5)
    opened = open_json(parse(line[: max(8, min(length, len(line) - 1))]), 2026)
    assert opened is None or all("\\u" not in message[:-6] or "\\" in text for message, _ in opened)


def test_what_has_no_message_is_left_alone() -> None:
    """Metrics and settings in JSON are text."""
    assert open_json(parse('{"step": 3, "loss": 0.1}'), 2026) is None
    assert open_json(parse("step {3}"), 2026) is None
    assert open_json(parse("{broken"), 2026) is None


def test_a_traceback_in_a_json_record_is_opened() -> None:
    """A logger that writes JSON puts it into one string; its lines are lines again, behind CRI too, and their places
    ascend.
    """
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: boom'
    record = json.dumps({"time": "2026-11-21T03:07:45Z", "rank": 3, "message": "failed", "exc_info": trace}).encode()
    for before in (b"", b"2026-11-21T03:07:45.372001123Z stderr F "):
        lines = lines_of((before + record + b"\n") * 3)
        assert [line.parsed.text for line in lines[:4]] == ["failed", *trace.split("\n")]
        assert {line.parsed.origin.rank for line in lines} == {3}
        assert [line.parsed.record for line in lines[:4]] == [True, False, False, False]
        assert [line.offset for line in lines] == sorted({line.offset for line in lines})
        assert all(one.end <= other.offset for one, other in itertools.pairwise(lines))


def test_docker_puts_nothing_of_its_own_into_the_message() -> None:
    """Prefixes inside the message count, and HTML escapes are gone."""
    line = '{"log":"[default3]:[rank7]: expected \\u003cTensor\\u003e \\u0026 got \\"None\\"\\n","stream":"stdout","time":"2026-11-21T03:07:45Z"}\n'
    [found, *_] = lines_of(line.encode() * 3)
    assert found.parsed.text == 'expected <Tensor> & got "None"'
    assert (found.parsed.origin.rank, found.parsed.origin.local_rank, found.parsed.origin.stream) == (7, 3, "stdout")


def test_bytes_of_the_journal_are_text_again() -> None:
    """journald writes what holds control characters as a list of numbers."""
    message = list(b"\x1b[31mboom")
    [found, *_] = lines_of((json.dumps({"MESSAGE": message, "_PID": "7"}) + "\n").encode() * 3)
    assert found.parsed.text == "boom"


@given(
    st.lists(
        st.tuples(st.sampled_from(["stdout", "stderr"]), st.text("ab ", min_size=1, max_size=12)),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_pieces_of_two_streams_are_joined(written: list[tuple[str, str]], data: st.DataObject) -> None:
    """However lines are cut and the streams mixed, each line comes back once and whole, also when asked for by any of
    its pieces.
    """
    queues: dict[str, list[tuple[str, str, str]]] = {"stdout": [], "stderr": []}
    for stream, line in written:
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
    text = Text("0.log", lambda offset, length: whole[offset : offset + length], len(whole), 2026, layout_of(whole))
    told = [(line.parsed.origin.stream, line.parsed.text) for line in text.lines_from(0, len(whole))]
    assert sorted(told) == sorted(written)
    at = 0
    for line in raw:
        [found] = text.at(at, at + len(line))
        assert (found.parsed.origin.stream, found.parsed.text) in written
        at += len(line) + 1
