"""The engine regex: look-around and back-references in signatures, within a time limit."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

import triage
from tests.catalog.factories import GLOO, evidence, parse_signature, shipped, signature, to_evidence, write
from triage.catalog import backtracking
from triage.catalog.backtracking import BacktrackingSearches, verify_backtracking_pattern
from triage.catalog.check import check_files
from triage.catalog.leaf_group import TEXTS_BEFORE_AUTOMATON
from triage.catalog.match import Matcher, MatchPlan, MatchSession, evaluate_signature
from triage.catalog.model import Catalog
from triage.catalog.regex import PatternError
from triage.catalog.slow_patterns import find_slow_text
from triage.diagnose import diagnose
from triage.diagnose.report import collect_warnings
from triage.ranks.identity import JobMap

SAME_RANKS = r"engine: regex" + "\n" + r"text: 'rank (?P<rank>\d+) waits for rank (?P=rank)\b(?! again)'"
HANGS = r"waits (\w*)(\w*)(\w*)\1x"
LONG = "waits " + "a" * 3000


def test_a_back_reference_and_a_look_ahead_match() -> None:
    """A leaf of this engine matches what RE2 cannot express, with its captures."""
    one = signature(SAME_RANKS)
    match = evaluate_signature(one, [evidence("rank 7 waits for rank 7")])
    assert match is not None
    assert match.captures == {"rank": "7"}
    assert match.clauses[0][0].startswith("engine regex, text /")
    for text in ("rank 7 waits for rank 8", "rank 7 waits for rank 7 again"):
        assert evaluate_signature(one, [evidence(text)]) is None


def test_texts_that_differ_in_digits_are_told_apart() -> None:
    """Each text is tested itself, also after so many that an automaton selects the leaves of RE2."""
    texts = [f"rank {number} waits for rank {number % 7}" for number in range(2 * TEXTS_BEFORE_AUTOMATON)]
    match = Matcher(Catalog("", (signature(SAME_RANKS),))).evaluate([evidence(text) for text in texts])["test.case"]
    assert match.indices == tuple(range(7))


def test_not_text_is_of_the_same_engine() -> None:
    """`not_text` may look around, too."""
    one = signature("engine: regex\ntext: 'lost (?=rank)'\nnot_text: '(?<=lost )rank 0'")
    assert evaluate_signature(one, [evidence("lost rank 1")]) is not None
    assert evaluate_signature(one, [evidence("lost rank 0")]) is None


def test_the_cache_keeps_the_engine() -> None:
    """A catalog survives its cache, and signatures of RE2 keep their fingerprints."""
    catalog = Catalog("1", (signature(SAME_RANKS), signature("text: 'lost rank'", "test.other")))
    encoded = msgspec.json.encode(catalog)
    assert msgspec.json.decode(encoded, type=Catalog) == catalog
    assert b'"engine"' not in msgspec.json.encode(Catalog("1", catalog.signatures[1:]))
    with pytest.raises(ValueError, match="perl"):
        msgspec.json.decode(encoded.replace(b'"regex"', b'"perl"'), type=Catalog)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "is empty"),
        ("(?:lost rank){e<=1}", "fuzzy"),
        ("lost (?R)", "recursion"),
        ("(?<rank>lost)", r"\(\?<name>"),
        ("lost [[a-z]--[b]]", "set operation"),
        (r"(?(1)a|b)", "conditional"),
        ("lost (?=", "refuses"),
        (r"lost \Krank", "refuses"),
    ],
)
def test_other_constructs_are_refused(pattern: str, message: str) -> None:
    """What few people can read, and what the scan cannot take literals from, is an error."""
    with pytest.raises(PatternError, match=message):
        verify_backtracking_pattern(pattern)


@pytest.mark.parametrize(("more", "refusals"), [(0, 0), (1, 1)])
def test_a_pattern_has_a_greatest_length(more: int, refusals: int) -> None:
    """A pattern as long as the limit is accepted, one character more is refused."""
    refused = []
    try:
        verify_backtracking_pattern("(?=a)" + "b" * (backtracking.MAX_PATTERN - 5 + more))
    except PatternError as error:
        refused.append(str(error))
    assert len(refused) == refusals
    assert all("at most 500" in message for message in refused)


def test_an_engine_needs_a_pattern() -> None:
    """`engine: regex` beside a kind alone does nothing, so it is a mistake."""
    text = GLOO.replace("    - text: 'during shutdown'", "    - {engine: regex, kind: exception}")
    one, problems = parse_signature(text, "gloo/peer-closed.yaml")
    assert one is None
    assert "without a pattern" in problems[0].message


def problems_of(tmp_path: Path, leaf: str, sample: str) -> list[str]:
    """Return the errors of a signature with this leaf."""
    base = shipped(tmp_path / "shipped")
    text = GLOO.replace(r"    - text: 'Read error \[(?P<peer>[^\]]+)\](:\d+)?: Connection reset by peer'", leaf)
    text = text.replace("  no_match:", f'    - {{text: "{sample}"}}\n  no_match:')
    problems = check_files([write(base, text=text)], to_evidence=to_evidence, shipped=base)
    return [problem.message for problem in problems if problem.severity == "error"]


def test_check_accepts_what_only_this_engine_can_do(tmp_path: Path) -> None:
    """A pattern with a back-reference, found by its literals, true to its sample."""
    leaf = r"    - {engine: regex, text: 'own peer (?P<peer>\d+) is (?P=peer)\b'}"
    assert problems_of(tmp_path, leaf, "own peer 3 is 3") == []


def test_check_refuses_the_engine_where_re2_would_do(tmp_path: Path) -> None:
    """RE2 stays the engine of everything that it can run."""
    (message,) = problems_of(tmp_path, r"    - {engine: regex, text: 'own peer (?P<peer>\d+)'}", "own peer 3")
    assert message.startswith("RE2 can run this pattern")


def test_check_refuses_a_pattern_that_takes_too_long(tmp_path: Path) -> None:
    """A text is generated on which the pattern does not end in time."""
    messages = problems_of(tmp_path, f"    - {{engine: regex, text: '{HANGS}'}}", "waits forx")
    assert any("takes too long" in message for message in messages)


@pytest.mark.parametrize(
    ("pattern", "is_slow"),
    [
        (r"(x+x+)+y(?=z)", True),
        (r"peer (\w*)(\w*)(\w*)\1x", True),
        (r"peer (?P<p>\S+) is (?P=p)\b", False),
        (r"lost \w{1,40}(?! again)", False),
        (r"a.*b.*(?=c)", False),
    ],
)
def test_slow_patterns_are_found(pattern: str, is_slow: bool) -> None:
    """Nested repeats time out on a generated text; repeats that share little do not."""
    assert (find_slow_text(pattern) is not None) == is_slow


def test_a_timeout_is_no_match_and_is_remembered() -> None:
    """A search that takes too long gives no match; the session says of which signature."""
    session = MatchSession(MatchPlan([signature(f"engine: regex\ntext: '{HANGS}'")]))
    started = time.monotonic()
    assert session.add([evidence(LONG)]) == {}
    assert session.list_timeouts() == ("test.case",)
    assert time.monotonic() - started < 10
    assert list(session.add([evidence("waits forx")])) == ["test.case"]


def test_a_timeout_of_not_text_is_no_match() -> None:
    """A finding is never made when it is not known whether it is excluded."""
    one = signature(f"engine: regex\ntext: 'waits (?=a)'\nnot_text: '{HANGS}'")
    assert evaluate_signature(one, [evidence(LONG)]) is None


def test_a_pattern_is_given_up_after_its_share_of_time() -> None:
    """However many texts there are, one pattern takes a bounded time in a job."""
    searches = BacktrackingSearches(search_seconds=0.02, job_seconds=0.05)
    for number in range(6):
        with pytest.raises(TimeoutError):
            searches.search(HANGS, f"{LONG}{number}")
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        searches.search(HANGS, LONG)
    assert time.monotonic() - started < 0.02


def test_only_the_start_of_a_text_is_seen() -> None:
    """The text that backtracking works on is short; what stands behind it is not seen."""
    searches = BacktrackingSearches()
    assert searches.search("end(?!s)", "." * (backtracking.MAX_TEXT - 3) + "end") is not None
    assert searches.search("end(?!s)", "." * (backtracking.MAX_TEXT - 2) + "end") is None


def test_a_timeout_is_a_warning_of_the_report() -> None:
    """An ingest with such a pattern ends, and the report names the signature."""
    catalog = Catalog("1", (signature(f"engine: regex\ntext: '{HANGS}'"),))
    result = diagnose([evidence(LONG)], [], JobMap(), catalog)
    (warning,) = (one for one in collect_warnings(result, JobMap()) if one.code == "pattern-timeout")
    assert "test.case" in warning.message


def test_an_ingest_finds_it_and_never_hangs(tmp_path: Path) -> None:
    """From a file to the report: the scan stops at the line, the cache has the engine, a slow pattern is a warning."""
    own = tmp_path / "own"
    for name, pattern in (("itself", r"rank (?P<rank>\d+) waits for rank (?P=rank)\b"), ("slow", HANGS)):
        text = GLOO.replace("gloo/transport.*Connection closed by peer", "gloo/transport.*Connection ended by peer")
        leaf = f"    - {{engine: regex, text: '{pattern}'}}\n  none:"
        write(own, f"test.{name}", text.replace("role: symptom", "role: cause").replace("  none:", leaf))
    log = tmp_path / "rank0.log"
    log.write_text(f"step 1 loss 2\nERROR rank 7 waits for rank 7\nERROR {LONG}\n", "utf-8")
    for _ in range(2):  # compiled, then from the cache
        diagnosis = triage.ingest(log, triage.Options(catalogs=(own,)))
        assert [finding.signature for finding in diagnosis.findings] == ["test.itself"]
        assert [warning.code for warning in diagnosis.warnings if "test.slow" in warning.message] == ["pattern-timeout"]
