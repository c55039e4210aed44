"""Where the place of an exception, or the statement that raised it, tells causes apart."""

from __future__ import annotations

import pytest

from triage.clusters import Clusters, fingerprint
from triage.model.diagnosis import Fingerprint
from triage.model.evidence import Evidence, Origin


def print_of(text: str, function: str = "read", code: str = "") -> Fingerprint:
    """Return the fingerprint of an exception that `function` raised."""
    name, _, message = text.partition(":")
    fields = {
        "type": name.rpartition(".")[2],
        "message": message.strip(),
        "file": "/w/a.py",
        "function": function,
        "code": code,
    }
    return fingerprint(Evidence("exception", "Python", text, Origin(), "x.log", 0, fields=fields))


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/a'", True),
        ("OSError: [Errno 22] Invalid argument", True),
        ("OSError: [Errno 28] No space left on device", False),
        ("OSError: [Errno 116] Stale file handle", False),
        ("RuntimeError: size mismatch", True),
        ("RuntimeError: size mismatch of lanes", False),
        ("RuntimeError: CUDA error: misaligned address", False),
        ("msgpack.exceptions.UnpackError: unpack received extra data", True),
        ("msgpack.exceptions.UnpackError: unpack of lanes received extra data twice", False),
        ("torch.cuda.LaneError: received extra data", False),
        ("OSError: Corrupt snappy compressed data", True),
        ("RuntimeError: dictionary changed size during iteration", True),
        ("HTTPError: 413 Client Error: Payload Too Large for url: https://a.b/c", True),
        ("HTTPError: 503 Server Error: Service Unavailable for url: https://a.b/c", False),
        ("LostError: lane lost", True),
        ("LostError: lane lost again", False),
        ("Empty", True),
    ],
)
def test_the_place_counts_for_what_the_caller_caused_and_for_few_words(text: str, counts: bool) -> None:
    """Errors of the machine and sentences of three words are the same failure wherever they happen."""
    assert (print_of(text).key != print_of(text, "write").key) == counts


def _join(*prints: Fingerprint) -> set[str]:
    clusters = Clusters()
    names = [clusters.assign(one).cluster for one in prints]
    return {clusters.resolve(name) for name in names}


@pytest.mark.parametrize(
    ("text", "function", "same"),
    [
        ("Exception: no lanes are known for this weave", "read", True),
        ("ValueError: no lanes are known for this weave, choose another", "read", True),
        ("ValueError: no lanes are known for this weave", "write", False),
        ("ValueError: no threads are known for this weave", "read", False),
    ],
)
def test_a_written_sentence_may_change_its_class_and_grow_at_its_place(text: str, function: str, same: bool) -> None:
    """The place of a sentence is one more word: another place or another word is another failure."""
    first = print_of("ValueError: no lanes are known for this weave")
    assert (len(_join(first, print_of(text, function))) == 1) == same


@pytest.mark.parametrize(("code", "same"), [("raise Lost(", True), ("", True)])
def test_a_release_that_hides_the_statement_stays_in_the_cluster(code: str, same: bool) -> None:
    """Where the traceback does not show the whole statement, the words decide."""
    text = "Lost: lane 4 of the weave is gone"
    assert (len(_join(print_of(text, code="raise Lost(path, offset)"), print_of(text, code=code))) == 1) == same


@pytest.mark.parametrize(
    ("code", "same"),
    [
        ("raise Lost(self.path, offset)", True),
        ("raise errors.Lost(path, offset) from error", True),
        ("raise Lost(path)", False),
        ("raise Lost(code, message)", False),
        ("raise Lost(path, 'lane is gone')", False),
        ("raise Lost(f'{lane}', path)", False),
        ("raise Gone(path, offset)", False),
        ("self.reader.next(path, offset)", False),
    ],
)
def test_a_class_of_the_job_writes_its_sentence(code: str, same: bool) -> None:
    """Raised with values alone, the statement counts and not the wording; a literal or a message is a wording."""
    one, other = (print_of(f"Lost: {text}", code=code) for text in ("the lane of 3 is gone", "Spur 4 fehlt hier ganz"))
    assert (one.key == other.key) == same
    assert any("uses the statement" in step for step in one.trail) == same


def test_builtin_classes_write_no_sentence() -> None:
    """ValueError prints its arguments as they are."""
    code = "raise ValueError(path, offset)"
    assert print_of("ValueError: one lane lost", code=code).key != print_of("ValueError: all lost", code=code).key


def test_two_statements_of_one_function_are_two_failures() -> None:
    """Other values are another cause."""
    texts = ("raise Lost(path, offset)", "raise Lost(path, offset, length)")
    assert len({print_of("Lost: record of the lane", code=code).key for code in texts}) == 2


def test_an_exception_without_a_frame_has_no_place() -> None:
    """Without a frame of the user's code the words decide."""
    assert print_of("FileNotFoundError: [Errno 2] No such file", "").guard == "any|errno=2|"


@pytest.mark.parametrize(
    ("text", "counts"), [("AssertionError", True), ("AssertionError: three lanes are wanted", False)]
)
def test_a_bare_assertion_is_its_condition(text: str, counts: bool) -> None:
    """A function asserts several conditions; a message says which."""
    one, other = (print_of(text, code=f"assert {name} is not None") for name in ("owner", "lane"))
    assert (one.key != other.key) == counts
