"""`make mutate` on a small package of which it is known what its tests notice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench import trust

for _library in ("cosmic_ray", "coverage", "pytest_cov"):
    pytest.importorskip(_library, reason="only `make mutate` needs it: pip install 'triage-kb[mutate]'")

from tests.mutation import __main__ as command  # noqa: E402
from tests.mutation.changes import Mutant, list_candidates, make_mutant, sample_mutants  # noqa: E402
from tests.mutation.report import EQUIVALENT, compute_score, read_equivalent, summarize, write_rooms  # noqa: E402
from tests.mutation.trial import Copy, Trial, judge_status, try_mutants  # noqa: E402

LIMITS = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 3


def is_over(value: "int | None") -> bool:
    return value is not None and value > LIMIT


def pick(values: "Sequence[int]") -> int:
    if not values:
        return -1
    return values[0]


def count(value: int) -> int:
    steps = 0
    while True:
        steps += 1
        if steps >= value:
            break
    return steps
"""
TESTS = """
from triage.tiny.limits import count, is_over, pick


def test_over():
    assert is_over(9)
    assert not is_over(1)
    assert not is_over(None)


def test_pick():
    assert pick([4, 5]) == 4


def test_count():
    assert count(2) == 2


def test_that_fails_always():
    assert count(2) == 3
"""
# The limit is tried far from its boundary, and pick() never without values.
SURVIVORS = {
    ("LIMIT = 3", "LIMIT = 4"),
    ("LIMIT = 3", "LIMIT = 2"),
    ("return value is not None and value > LIMIT", "return value is not None and value >= LIMIT"),
    ("if not values:", "if False:"),
    ("return -1", "pass"),
    ("return -1", "return - 0"),
    ("return -1", "return - 2"),
    ("return -1", "return 1"),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Write a checkout with one room, `tiny`."""
    root = tmp_path / "checkout"
    for name, text in {
        "triage/__init__.py": "",
        "triage/tiny/__init__.py": "",
        "triage/tiny/limits.py": LIMITS,
        "tests/tiny/test_limits.py": TESTS,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def draw_all(checkout: Path) -> list[Mutant]:
    """Return every mutant of the room."""
    return sample_mutants(checkout, checkout / "triage" / "tiny", 1000, 0)


def test_the_survivors_are_those_that_no_test_can_notice(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tests notice is caught, what they cannot notice survives, and the checkout is as before."""
    wanted = [mutant for mutant in draw_all(checkout) if "steps" not in mutant.before and "break" not in mutant.before]
    wanted = [mutant for mutant in wanted if mutant.before != "while True:"]
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    trials, failing = command.try_room(checkout, "tiny", wanted)
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before
    assert {(trial.mutant.before, trial.mutant.after) for trial in trials if trial.outcome == "survived"} == SURVIVORS
    assert len(trials) == len(wanted) > len(SURVIVORS) + 5
    assert failing == ("tests/tiny/test_limits.py::test_that_fails_always",)
    noticed = {trial.test.rpartition("::")[2] for trial in trials if trial.outcome == "killed"}
    assert noticed == {"test_over", "test_pick"}
    assert "not noticed: triage/tiny/limits.py:7: LIMIT = 3  →  LIMIT = 4" in capsys.readouterr().out


def test_a_change_that_never_ends_is_stopped(checkout: Path, tmp_path: Path) -> None:
    """A loop without end is ended by its limit, and the next change is tried in the same copy."""
    mutants = {mutant.after: mutant for mutant in draw_all(checkout) if mutant.before == "break"}
    copy = Copy.make(checkout, tmp_path / "copy", "tiny")
    lines = copy.measure_baseline().lines
    copy.skipped, copy.cpu_seconds = ("tests/tiny/test_limits.py::test_that_fails_always",), 3
    assert copy.try_mutant(mutants["continue"], lines).outcome == "timeout"
    copy.cpu_seconds, copy.usual_seconds = 600, lines.seconds
    assert copy.try_mutant(mutants["pass"], lines).outcome == "timeout"
    copy.usual_seconds, copy.wall_seconds = {}, 4.0
    assert copy.try_mutant(mutants["pass"], lines).outcome == "timeout"
    copy.wall_seconds = 60.0
    copy.close()
    assert copy.run_tests(())[0] == 0


def test_the_tests_that_can_notice_a_change_run(checkout: Path, tmp_path: Path) -> None:
    """Of a line in a function those that run its statement; of a line that runs at import those that run its file."""
    lines = Copy.make(checkout, tmp_path / "copy", "tiny").measure_baseline().lines

    def choose(text: str, name: str = "limits.py") -> tuple[str, set[str]]:
        numbers = {line.strip(): number for number, line in enumerate(LIMITS.splitlines(), 1)}
        path = f"triage/tiny/{name}"
        function = lines.find_function(path, numbers[text], LIMITS)
        tests = lines.order_tests(path, numbers[text], function)
        return function.name if function else "", {test.rpartition("::")[2] for test in tests}

    assert choose("return values[0]") == ("pick", {"test_pick"})
    assert choose("return -1") == ("pick", set())  # no test runs this line
    assert choose("if not values:") == ("pick", {"test_pick"})
    assert choose("if steps >= value:") == ("count", {"test_count", "test_that_fails_always"})
    assert choose("LIMIT = 3") == ("", {"test_over", "test_pick", "test_count", "test_that_fails_always"})
    assert choose('def pick(values: "Sequence[int]") -> int:')[0] == ""
    assert choose("LIMIT = 3", "other.py") == ("", set())


def test_a_damaged_copy_voids_the_outcomes(checkout: Path, tmp_path: Path) -> None:
    """If the tests fail in a copy at the end, without a change, no outcome is believed."""
    copy = Copy.make(checkout, tmp_path / "copy", "tiny")
    baseline = copy.measure_baseline()
    (copy.root / "triage" / "tiny" / "limits.py").write_text("raise OSError\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="without a change; the outcomes are void"):
        list(try_mutants(copy, [], baseline, 1))


def test_a_room_whose_tests_do_not_run_is_refused(checkout: Path, tmp_path: Path) -> None:
    """Without a test that runs, nothing is measured."""
    (checkout / "tests" / "tiny" / "test_limits.py").write_text("import no_such_module\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="cannot be run without a change"):
        Copy.make(checkout, tmp_path / "copy", "tiny").measure_baseline()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(0, "survived"), (1, "killed"), (2, "killed"), (4, "killed"), (5, "survived"), (-11, "killed"), (None, "timeout")],
)
def test_what_an_exit_status_means(status: int | None, outcome: str) -> None:
    """A failure, a crash and an import that fails notice the change; if no test is left, nothing does."""
    assert judge_status(status) == outcome


def list_changes(tmp_path: Path, code: str) -> set[tuple[str, str]]:
    """Return the changed lines of all mutants of a text."""
    path = tmp_path / "module.py"
    path.write_text(f"{code}\n", encoding="utf-8")
    mutants = [make_mutant(tmp_path, candidate) for candidate in list_candidates(tmp_path, path)]
    return {(mutant.before, mutant.after) for mutant in mutants if mutant is not None}


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a == b", {"x = a != b"}),
        ("x = a is None", {"x = a is not None"}),
        ("x = a in b", {"x = a not in b"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = 7", {"x = 8", "x = 6"}),
        ("x = True", {"x = False"}),
        ("x = a if b else c", {"x = a if True else c", "x = a if False else c"}),
        ("x = [a for a in b if c]", {"x = [a for a in b if True]", "x = [a for a in b if False]"}),
        ("if a: pass\nelif b: pass", {"if True: pass", "if False: pass", "elif True: pass", "elif False: pass"}),
        ("def f(): return a", {"def f(): pass"}),
        ("for a in b: continue", {"for a in b: break", "for a in b: pass"}),
    ],
)
def test_what_is_changed(tmp_path: Path, code: str, changes: set[str]) -> None:
    """Each comparison, constant, condition and early exit has its changes."""
    assert {" ".join(after.split()) for _, after in list_changes(tmp_path, code)} == changes


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "x: Literal[3]",
        "@dataclass(frozen=True)\nclass A: ...",
        "if TYPE_CHECKING:\n    import a",
        '"""1 < 2"""',
        "x = f'{a:10}'",
    ],
)
def test_what_does_nothing_is_not_changed(tmp_path: Path, code: str) -> None:
    """Annotations, decorators, imports for type checkers and texts stay."""
    assert list_changes(tmp_path, code) == set()


def test_a_sample_is_the_same_each_time_and_goes_everywhere(checkout: Path) -> None:
    """One seed gives one sample; another gives another; no place is drawn twice before all were drawn once."""
    room = checkout / "triage" / "tiny"
    sample = sample_mutants(checkout, room, 8, 0)
    assert len(sample) == 8
    assert sample == sample_mutants(checkout, room, 8, 0)
    assert sample != sample_mutants(checkout, room, 8, 1)
    places = {candidate.start for candidate in list_candidates(checkout, room / "limits.py")}
    everywhere = sample_mutants(checkout, room, len(places), 0)
    assert {mutant.line for mutant in everywhere} == {line for line, _ in places}


def make_trial(before: str, outcome: str) -> Trial:
    """Return a trial of a change of one line."""
    return Trial(Mutant("triage/tiny/limits.py", 3, "pick", before, "pass", ""), outcome, 1.0)  # type: ignore[arg-type]


def test_the_result_counts_rooms_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equivalent changes do not count; a second room leaves the first as it was; the page has a row for each."""
    monkeypatch.setattr(trust, "RESULTS", tmp_path)
    trials = [make_trial(*pair) for pair in (("a", "killed"), ("b", "timeout"), ("c", "survived"), ("d", "survived"))]
    room = summarize(
        trials, {("triage/tiny/limits.py::pick", "d", "pass"): "the same"}, ["tests/tiny/test_limits.py::test"]
    )
    assert (room["mutants"], room["killed"], room["timeouts"], room["equivalent"], room["survived"]) == (4, 1, 1, 1, 1)
    assert [item["before"] for item in room["survivors"]] == ["c"]
    assert compute_score(room) == pytest.approx(2 / 3)
    write_rooms({"tiny": room})
    stored = json.loads(write_rooms({"another": {**room, "survived": 0}}).read_text(encoding="utf-8"))
    assert list(stored["rooms"]) == ["another", "tiny"]
    page = trust.format_page()
    assert "| `another` | 4 | 2 | 1 | 1 | 0 | 100% |" in page
    assert "| `tiny` | 4 | 2 | 1 | 1 | 1 | 67% |" in page
    assert "1 tests of `tiny` failed without a change" in page


def test_survivors_are_tried_again(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a test was added, only the survivors are tried, and the counts of the others stay."""
    monkeypatch.setattr(trust, "RESULTS", tmp_path / "results")
    changes = {("LIMIT = 3", "LIMIT = 4"), ("if not values:", "if False:")}
    survivors = [mutant for mutant in draw_all(checkout) if (mutant.before, mutant.after) in changes]
    trials = [make_trial("a", "killed"), *(Trial(mutant, "survived", 1.0) for mutant in survivors)]
    write_rooms({"tiny": summarize(trials, {}, ())})
    with (checkout / "tests" / "tiny" / "test_limits.py").open("a", encoding="utf-8") as out:
        out.write("\n\ndef test_the_boundary():\n    assert is_over(4)\n")
    room = command.try_again(checkout, ["tiny"])["tiny"]
    assert [item["before"] for item in room["survivors"]] == ["if not values:"]
    assert (room["mutants"], room["killed"], room["survived"]) == (3, 2, 1)
    (checkout / "triage" / "tiny" / "limits.py").write_text(f"\n{LIMITS}", encoding="utf-8")
    with pytest.raises(SystemExit, match="triage/tiny has changed"):
        command.try_again(checkout, ["tiny"])


def test_a_change_is_named_by_its_function(checkout: Path) -> None:
    """Equal lines in two functions are two changes."""
    scopes = {mutant.change[0].rpartition("::")[2] for mutant in draw_all(checkout)}
    assert scopes == {"", "is_over", "pick", "count"}


def test_an_unknown_room_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the rooms."""
    assert command.main(["1", "cellar"]) == 2
    assert "no such room: cellar; choose from clusters, " in capsys.readouterr().err


def make_mutants_of_lines(path: str, texts: Sequence[str]) -> Iterator[Mutant]:
    """Yield the mutants of the lines of a module that are part of one of these texts."""
    lines = (trust.ROOT / path).read_text(encoding="utf-8").split("\n")
    for candidate in list_candidates(trust.ROOT, trust.ROOT / path):
        if any(lines[candidate.start[0] - 1].strip() in text for text in texts):
            mutant = make_mutant(trust.ROOT, candidate)
            if mutant is not None:
                yield mutant


def test_equivalent_changes_have_a_reason_and_are_still_changes(tmp_path: Path) -> None:
    """Each line has four fields, and its change is one that `make mutate` tries on the code of today."""
    damaged = tmp_path / "equivalent.tsv"
    damaged.write_text("# a comment\na.py\tx\ty\t\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"equivalent.tsv:2: write path::scope"):
        read_equivalent(damaged)
    reasons = read_equivalent(EQUIVALENT)
    befores: dict[str, list[str]] = {}
    for place, before, _ in reasons:
        befores.setdefault(place.partition("::")[0], []).append(before)
    mutants = [mutant for path, texts in befores.items() for mutant in make_mutants_of_lines(path, texts)]
    assert set(reasons) - {mutant.change for mutant in mutants} == set()
