"""What a failure's fingerprint keeps and what it forgets."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given, strategies as st

from triage import evidence
from triage.clusters import fingerprint
from triage.clusters.fingerprint import headline_words
from triage.clusters.headline import extract_headline
from triage.clusters.rules import Rule, load_rules
from triage.model.evidence import Evidence, Origin


def fact(text: str, **fields: str) -> Evidence:
    return Evidence("exception", "Python", text, Origin(), "x.log", 0, fields=fields)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "ValueError: shard /data/a_1.tar ends after 3 of 10 records",
            "ValueError: shard s3://b/c_22.tar ends after 4 of 11 records",
        ),
        (
            "RuntimeError: CUDA error: misaligned address",
            "torch.AcceleratorError: CUDA error: misaligned address\nCompile with `TORCH_USE_CUDA_DSA`",
        ),
        (
            "ptxas error   : Entry function '_Z15scan_tiles_bf16PK13__nv_bfloat16Pfi' uses too much shared data",
            "ptxas error   : Entry function '_Z15scan_tiles_bf16PK13__nv_bfloat16Pfii' uses too much shared data",
        ),
        ("OSError: lost node17 at 10.0.0.3:4411", "OSError: lost gpu-a100-03.cluster.local at 10.9.8.7:1"),
    ],
)
def test_what_changes_from_run_to_run_is_forgotten(one: str, other: str) -> None:
    """Paths, hosts, addresses, numbers and the wrapper of a version do not change the key."""
    assert fingerprint(fact(one)).key == fingerprint(fact(other)).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OSError: [Errno 28] failed to write", "OSError: [Errno 5] failed to write"),
        ("RuntimeError: EI0002: wait timed out", "RuntimeError: EI0006: wait timed out"),
        ("HTTPError: HTTP 403 from the store", "HTTPError: HTTP 503 from the store"),
        ("ValueError: expected float16 weights", "ValueError: expected float32 weights"),
        ("KeyError: 'lr'", "KeyError: 'wd'"),
    ],
)
def test_what_carries_the_cause_is_kept(one: str, other: str) -> None:
    """Codes, types and names make another failure."""
    assert fingerprint(fact(one)).key != fingerprint(fact(other)).key


def test_the_place_counts_only_where_any_code_raises() -> None:
    """An IndexError of another function is another failure; running out of memory in another function is the same."""
    here = {"file": "/w/a.py", "function": "pick"}
    there = {"file": "/v/b.py", "function": "rate"}
    text = "IndexError: list index out of range"
    assert (
        fingerprint(fact(text, type="IndexError", **here)).key
        != fingerprint(fact(text, type="IndexError", **there)).key
    )
    text = "RuntimeError: CUDA error: out of memory"
    assert (
        fingerprint(fact(text, type="RuntimeError", **here)).key
        == fingerprint(fact(text, type="RuntimeError", **there)).key
    )


@pytest.mark.parametrize(
    "text", ["exitcode 1", "Aborted (core dumped)", "", "ChildFailedError: ", "Error", "\x1b[31m\x1b[0m", "12345"]
)
def test_no_headline_no_anchor(text: str) -> None:
    """What says only that something failed is unanchored."""
    assert not fingerprint(fact(text)).anchored


def test_an_assertion_without_words_is_identified_by_its_place() -> None:
    """A bare AssertionError is anchored by the function that raised it."""
    assert fingerprint(fact("AssertionError", type="AssertionError", file="loss.py", function="check")).anchored
    assert not fingerprint(fact("AssertionError", type="AssertionError")).anchored


def test_a_failed_check_is_identified_by_its_condition_too() -> None:
    """Two conditions of one function are two failures; what another kind of crash prints does not count."""

    def key(kind: str, message: str) -> str:
        return fingerprint(fact("Check failed", crash_point="p-1", crash_kind=kind, message=message)).key

    assert key("check", "fd_ >= 0 (-1 vs. 0)") == key("check", "fd_ >= 0 (-2 vs. 0)") != key("check", "crc == sum")
    assert key("segv", "fd_ >= 0") == key("segv", "crc == sum")


def test_a_crash_is_identified_by_its_crash_point() -> None:
    """Two stacks with one crash point are one failure whatever their text; another point is another."""
    one, same, other = (
        fingerprint(fact(text, crash_point=point))
        for text, point in (("SIGSEGV at 0x8", "p-1"), ("Fatal Python error", "p-1"), ("SIGSEGV at 0x8", "p-2"))
    )
    assert one.key == same.key != other.key
    assert one.anchored


def test_the_trail_names_every_step() -> None:
    """The trail names the rules that took the wrapper off and the codes."""
    text = (
        "torch.distributed.DistBackendError: NCCL error in: /x.cpp:1, internal error, NCCL version 2.21\n"
        "Last error:\nfoo failed with error 110"
    )
    result = fingerprint(evidence.extract_text("Traceback (most recent call last):\n" + text)[0])
    assert result.guard == "NCCL|error-code=110|"
    assert result.trail == ("unwrapped by nccl-last-error", "uses the code error-code=110")


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("SinkError: lost\nmore", "SinkError: lost"),
        ("SinkError:\nlane lost\nmore", "SinkError: lane lost"),
        ("SinkError:\ntwo things:\nlane lost\nmore", "SinkError: two things: lane lost"),
        ("SinkError:\ntwo things:\none of them:\nlost", "SinkError: two things: one of them:"),
    ],
)
def test_a_line_that_introduces_others_takes_them_along(text: str, headline: str) -> None:
    """The headline is the first line, with the next where it ends as an introduction, three at most."""
    assert extract_headline(fact(text), load_rules()).text == headline


def test_a_rule_is_tried_only_on_texts_with_what_it_needs() -> None:
    """A rule takes its wrapper off where its literal is in the text, and leaves other texts alone."""
    rule = Rule("wrapper", re.compile(r"^outer: (?P<inner>.*)"), needs="sink")
    rules = dataclasses.replace(load_rules(), unwraps=(rule,))
    assert extract_headline(fact("outer: the sink is lost"), rules).text == "the sink is lost"
    assert extract_headline(fact("outer: the lane is lost"), rules).text == "outer: the lane is lost"


@pytest.mark.parametrize(("wrappers", "left"), [(8, 0), (9, 1)])
def test_at_most_eight_wrappers_are_taken_off(wrappers: int, left: int) -> None:
    """A text that is wrapped more often keeps the rest of its wrappers."""
    rules = dataclasses.replace(load_rules(), unwraps=(Rule("wrapper", re.compile(r"^outer (?P<inner>.*)")),))
    assert extract_headline(fact("outer " * wrappers + "lost"), rules).text == "outer " * left + "lost"


@pytest.mark.parametrize(("length", "expected"), [(2000, 2000), (2001, 2000), (9000, 2000)])
def test_a_headline_has_an_end(length: int, expected: int) -> None:
    """At most 2,000 characters are the headline."""
    assert len(extract_headline(fact("x" * length), load_rules()).text) == expected


def test_masks_and_idle_words_say_nothing() -> None:
    """The words of a headline are without what changes from run to run, and without idle words."""
    assert headline_words("Writer lost the lane in <path>") == {"writer", "lost", "lane"}


def test_a_failure_without_a_headline_shows_its_first_line() -> None:
    """What is shown of a text of boilerplate is its first line, cut after 300 characters."""
    rules = dataclasses.replace(load_rules(), footers=(Rule("footer", re.compile("^footer")),))
    assert fingerprint(fact("\nfooter one\nfooter two"), rules).headline == "footer one"
    assert fingerprint(fact("footer " + "x" * 400), rules).headline == "footer " + "x" * 293


@pytest.mark.parametrize(
    ("text", "fields", "anchored"),
    [
        ("lane lost", {}, True),
        ("lane", {}, False),
        ("[Errno 5] lane", {}, True),
        ("IndexError", {"type": "IndexError", "file": "/w/a.py", "function": "pick"}, True),
        ("IndexError", {"type": "IndexError", "file": "/w/a.py"}, False),
    ],
)
def test_one_word_needs_a_code_or_a_place(text: str, fields: dict[str, str], anchored: bool) -> None:
    """Two words anchor a failure; one does with an error code, or with the function that raised it."""
    assert fingerprint(fact(text, **fields)).anchored == anchored


def test_an_exit_code_counts_only_without_words() -> None:
    """Two exit codes make two failures where no word says what happened, and one where words do."""
    assert fingerprint(fact("12345", exitcode="1")).guard.endswith("|exit=1|")
    assert fingerprint(fact("12345", exitcode="1")).key != fingerprint(fact("12345", exitcode="7")).key
    one, other = (fingerprint(fact("SinkError: lane lost", exitcode=code)) for code in "17")
    assert one.key == other.key


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        (
            "RpcError: <RpcError that ended with:\n\tstatus = LOST\n\tdetails = gone\n\tmore",
            "status = LOST details = gone",
        ),
        ("RpcError: ended\n\tstatus = LOST", "ended"),
        ("ValidationError: 1 error for Spec\nsize -> lane\n  too small\nnext", "Spec size -> lane too small"),
        ("ValidationError: 1 error for Spec\nsize -> lane\ntoo small", "Spec size -> lane"),
    ],
)
def test_a_bracket_or_a_deeper_line_takes_the_next_lines_along(text: str, headline: str) -> None:
    """An open bracket, or a line that is indented below an introduced one, belongs to the headline."""
    assert extract_headline(fact(text), load_rules()).text.endswith(headline)


def test_last_lines_behind_a_status_are_no_headline() -> None:
    """What a writer printed around its status says nothing of the failure; behind an exception's footer it does."""
    text = "/app/train.py FAILED\nsys.exit(main())"
    ending = dataclasses.replace(fact(text), kind="ending")
    assert not fingerprint(ending).anchored
    assert extract_headline(fact(text), load_rules()).text == "sys.exit(main())"


def test_reports_of_an_end_are_unanchored_and_one_only_where_they_are_equal() -> None:
    """`Task failed.` joins no other report of an end; its number does not count, and an exception has its class."""
    task, other, again = (
        fingerprint(dataclasses.replace(fact(text), kind="ending"))
        for text in ("Task 7 failed.\nstep 9", "Exit_status=1", "Task 12 failed.\nstep 8")
    )
    assert not task.anchored
    assert not other.anchored
    assert task.key == again.key != other.key
    assert fingerprint(fact("PlanRefused: task failed")).anchored


def test_a_wrapper_among_other_last_lines_is_not_unwrapped() -> None:
    """The first of the last lines is the failure; an error of another rank that is quoted behind it is not."""
    text = "[agent/drain] rank=0 ERROR: host was drained\nDistBackendError: NCCL error in: a.cpp:1, remote error"
    ending = dataclasses.replace(fact(text), kind="ending")
    assert extract_headline(ending, load_rules()).text == "host was drained"
    assert extract_headline(fact(text), load_rules()).component == "NCCL"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("[agent/drain] rank=0 ERROR: host was drained", ("drain",)),
        ("agentd[81]: rank 3: volume is not attached", ("agentd",)),
        ("[2026-09-05] host was drained", ()),
        ("host was drained by agentd[81]: ticket 7", ()),
    ],
)
def test_the_program_of_a_last_line_is_its_place(text: str, places: tuple[str, ...]) -> None:
    """Programs name themselves, or their part, before the line; other facts have no program."""
    ending = dataclasses.replace(fact(text), kind="ending")
    assert fingerprint(ending).places == places
    assert fingerprint(fact(text)).places == ()


@given(st.text(max_size=300), st.text(max_size=30))
def test_any_text_has_a_fingerprint(text: str, name: str) -> None:
    """No text is refused, and the same text has the same fingerprint in another rank of another job."""
    one = fact(text, type=name, function=name, file=name)
    other = dataclasses.replace(one, origin=Origin(rank=7, host="node9", pid=3), source="y.log", offset=99, line=4)
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one).version == load_rules().version


def test_a_generic_sentence_needs_the_function_of_its_stack() -> None:
    """Go's runtime words all closed channels alike; the goroutine's first own function tells them apart."""
    text = "panic: send on closed channel\ngoroutine 7 [running]:\na.dev/{0}.({1}).Run(0x1)\n\t/src/{0}.go:7 +0x8"
    one, other, moved = (fact(text.format(*pair)) for pair in (("x", "*Q"), ("y", "*R"), ("z", "*Q")))
    assert fingerprint(one).key != fingerprint(other).key
    assert fingerprint(one).key == fingerprint(moved).key


def test_an_exception_of_a_jvm_counts_beside_its_crash_point() -> None:
    """A method throws several exceptions; one of them with other numbers is the same."""

    def thrown(text: str) -> Evidence:
        return Evidence("crash", "jvm", text, Origin(), "x.log", 0, fields={"crash_point": "p-1"})

    one, same, other = (
        fingerprint(thrown(f'Exception in thread "feed-{text}'))
        for text in ('1" java.io.EOFException: block 7 is short', '2" java.io.EOFException: block 9 is short',
                     '3" java.lang.IllegalStateException: closed')
    )  # fmt: skip
    assert one.key == same.key != other.key


def test_a_crash_of_python_alone_is_that_of_the_users_frame() -> None:
    """Both died in the same function of torch, called from two places; with native frames the crash point counts."""

    def died(file: str, frame: str = "_ops.py:__call__") -> str:
        fields = {"crash_point": "p-1", "frame": frame, "python": "_ops.py:__call__", "file": file, "function": "f"}
        return fingerprint(
            Evidence("fatal-python", "Python", "Fatal Python error: Aborted", Origin(), "x", 0, fields=fields)
        ).key

    assert died("/w/a.py") != died("/w/b.py")
    assert died("/w/a.py", "at::mm") == died("/w/b.py", "at::mm")


@pytest.mark.parametrize("kind", ["exception", "ending"])
def test_who_parsed_it_does_not_matter(kind: str) -> None:
    """A traceback of one job is a last line of another."""
    text = "LeaseError: the lease was lost at step 7"
    assert fingerprint(Evidence(kind, "logger", text, Origin(), "x", 0)).key == fingerprint(fact(text)).key


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("could not find the footer", "unable to find the footers", True),
        ("could not find the footer", "could not parse the footer", False),
        ("layout of tensor is not supported", "unsupported layout of tensor", True),
        ("the model's plan differs", "the models plan differs", True),
        ("loss of lane", "los of lane", False),
        ("bound is above the lane", "bound is below the lane", False),
    ],
)
def test_words_that_mean_the_same_are_one(one: str, other: str, same: bool) -> None:
    """Phrases of the rules and plurals do not tell headlines apart; other words do."""
    assert (headline_words(one) == headline_words(other)) == same


_JAVA = (
    "java.lang.IllegalStateException: already closed\n\tat java.base/java.util.Objects.check(Objects.java:3)\n\tat {}"
)


@pytest.mark.parametrize(
    ("frame", "same"),
    [
        ("app//org.example.lane.Loom.lambda$weave$7(Loom.java:9)", True),
        ("org.other.Loom.lambda$weave$3(Loom.java:1)", True),
        ("org.example.Loom.close(Loom.java:1)", False),
    ],
)
def test_an_exception_of_a_jvm_counts_the_first_method_of_the_program(frame: str, same: bool) -> None:
    """Packages, modules, lines and numbers of lambdas change with releases; another method is another failure."""
    first = fingerprint(fact(_JAVA.format("org.example.Loom.lambda$weave$3(Loom.java:1)")))
    assert (fingerprint(fact(_JAVA.format(frame))).key == first.key) == same


@pytest.mark.parametrize("owner", ["Feed$Reader", "Feed$", "Feed"], ids=["inner class", "object of Scala", "class"])
def test_a_method_of_an_inner_class_is_the_first(owner: str) -> None:
    """The method of an inner class, or of an object of Scala, is that of the program, not its caller's."""
    frames = "org.example.{}.{}(Feed.scala:9)\n\tat org.example.Main.main(Main.scala:3)"
    one, other = (fingerprint(fact(_JAVA.format(frames.format(owner, name)))) for name in ("seek", "grow"))
    assert one.key != other.key


_GO = (
    "panic: index out of range [{}]\ngoroutine 7 {}[running]:\n{}(0xc0)\n\t/src/a.go:3 +0x1\nmain.main()\n\t/src/m.go:1"
)


@pytest.mark.parametrize(
    ("state", "function", "same"),
    [
        ("gp=0xc0 m=3 mp=0xc1 ", "lane.dev/loom.(*Ring[go.shape.int]).Push", True),
        ("", "lane.dev/loom.(*Ring[...]).Pop", False),
    ],
)
def test_a_goroutine_counts_its_function_in_every_release(state: str, function: str, same: bool) -> None:
    """What Go prints behind the number of a goroutine and for type arguments changes; the function stays."""
    first = fingerprint(fact(_GO.format(1, "", "lane.dev/loom.(*Ring[...]).Push")))
    assert (fingerprint(fact(_GO.format(2, state, function))).key == first.key) == same


@pytest.mark.parametrize(
    ("message", "same"),
    [("depth < limit (3 vs. 4) in lane 7", True), ("depth < limit", True), ("depth < width (3 vs. 4)", False)],
)
def test_a_failed_check_is_its_condition(message: str, same: bool) -> None:
    """The compared values and what a release adds to them are not part of it."""
    fields = {"crash_point": "p-1", "crash_kind": "check"}
    first = fingerprint(fact("Check failed", message="depth < limit (9 vs. 8)", **fields))
    assert (fingerprint(fact("Check failed", message=message, **fields)).key == first.key) == same


_NODE = "TypeError: {}\n    at Array.map (<anonymous>)\n    at {} (/src/index.js:58:23)"
_LUA = "lua: /src/index.lua:58: {}\nstack traceback:\n\t[C]: in ?\n\t/src/index.lua:58: in method '{}'"
_ERLANG = "exception error: {}\n  in function  ets:lookup/2\n  in call from {}/2 (src/index.erl, line 58)"
_OCAML = 'Fatal error: exception {}\nRaised at Stdlib.find in file "h.ml"\nCalled from {} in file "src/index.ml"'
_ZIG = "thread 7 panic: {}\n/src/index.zig:58:17: 0x103958 in {} (shop)"


_LANGUAGES = {
    "Node": (_NODE, "Cannot read properties of undefined (reading 'rows')", "Feed.grow", "Feed.seek"),
    "Lua": (_LUA, "attempt to index a nil value (field 'rows')", "grow", "seek"),
    "Erlang": (_ERLANG, "no match of right hand side value {error,enoent}", "feed:grow", "feed:seek"),
    "OCaml": (_OCAML, 'Invalid_argument("index out of bounds")', "Feed.grow", "Feed.seek"),
    "Zig": (_ZIG, "index out of bounds: index 7, len 3", "grow", "seek"),
}


@pytest.mark.parametrize(("form", "sentence", "one", "other"), _LANGUAGES.values(), ids=_LANGUAGES.keys())
def test_a_sentence_of_a_language_needs_the_function(form: str, sentence: str, one: str, other: str) -> None:
    """Any code can cause a sentence of the language; where the program states its cause, the function adds nothing."""
    assert fingerprint(fact(form.format(sentence, one))).key != fingerprint(fact(form.format(sentence, other))).key
    if form is not _ZIG:  # a panic of Zig says nothing else
        own = "the shard holds no rows of the split"
        assert fingerprint(fact(form.format(own, one))).key == fingerprint(fact(form.format(own, other))).key


def test_the_innermost_cause_of_dotnet_is_the_failure() -> None:
    """.NET prints it behind an arrow, in the next line or, before .NET Core 3, in the same one."""
    inner = "System.InvalidOperationException: queue {} is empty"
    outer = "Unhandled exception. System.AggregateException: One or more errors occurred. (queue 7 is empty)"
    keys = {
        fingerprint(fact(text)).key
        for text in (
            inner.format(3),
            f"{outer}\n ---> {inner.format(7)}\n   at Shop.Stock.Count()",
            f"Unhandled Exception: Shop.Failed: no stock ---> {inner.format(7)}",
        )
    }
    assert len(keys) == 1


_PANIC = "thread 'reader-3' panicked at src/{}.rs:7:2:\n{}"


@pytest.mark.parametrize(
    ("sentence", "same"),
    [
        ("ring slot 7 was poisoned by writer 3", True),
        ("index out of bounds: the len is 3 but the index is 7", False),
        ("queue is closed", False),
    ],
)
def test_a_sentence_of_the_program_needs_no_place(sentence: str, same: bool) -> None:
    """Where a program states its own cause in a sentence, the file of the panic does not count."""
    one, other = (fingerprint(fact(_PANIC.format(file, sentence))) for file in ("ring", "queue"))
    assert (one.key == other.key) == same


def test_a_panic_that_python_sees_is_the_same() -> None:
    """An extension module raises its panic as an exception."""
    panic = fingerprint(fact(_PANIC.format("ring", "ring slot 7 was poisoned by writer 3")))
    raised = fingerprint(fact("pyo3_runtime.PanicException: ring slot 9 was poisoned by writer 1"))
    assert raised.key == panic.key


_THROWN = "{}: offset 7 of topic samples is not kept\n\tat org.example.{}(Feed.java:51)"


@pytest.mark.parametrize(
    ("name", "same"), [("org.example.OffsetException", True), ("java.lang.IllegalStateException", False)]
)
def test_an_exception_of_the_jvm_itself_needs_its_method(name: str, same: bool) -> None:
    """A class of the program says its cause in words; one of the language may be thrown for any reason."""
    one, other = (fingerprint(fact(_THROWN.format(name, method))) for method in ("Feed.seek", "Pump.run"))
    assert (one.key == other.key) == same


def test_names_and_values_in_brackets_are_no_words() -> None:
    """`(device 3, queue 7)` adds nothing to a sentence; a clause in brackets does."""
    assert headline_words("ring stalled (device <n>, queue <n>)") == headline_words("ring stalled")
    assert headline_words("ring stalled (the queue was reset)") > headline_words("ring stalled")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("ERROR STORE-E0417 packer[7]: no volume is mounted", "FATAL STORE-E0417: kein Datenträger", True),
        (
            "ERROR STORE-E0417 packer[7]: no volume is mounted",
            "ERROR STORE-E0418 packer[7]: no volume is mounted",
            False,
        ),
        ("reader failed\nFlexNet Licensing error:-5,357", "NoLicence: gone. FlexNet Licensing error:-5,21", True),
        ("MapFull: mdb_put: MDB_MAP_FULL: map is full", "Check failed: rc == 0 (-1 vs. 0) MDB_MAP_FULL: Full", True),
        ("MapFull: mdb_put: MDB_MAP_FULL: map is full", "MapFull: mdb_put: MDB_DBS_FULL: map is full", False),
    ],
)
def test_a_code_of_the_program_decides_alone(one: str, other: str, *, is_same: bool) -> None:
    """Where a message has a number or a name of its own, neither its sentence nor its language counts."""
    assert (fingerprint(fact(one)).key == fingerprint(fact(other)).key) is is_same


@pytest.mark.parametrize(
    "between",
    [
        "Epoch 0:  68%|####  | 340/500 [08:33<03:44, 2.92it/s]",
        "{'loss': 2.4, 'epoch': 0.25}",
        "/opt/venv/a.py:55: UserWarning: pass it explicitly",
        "warnings.warn(",
        "wandb: Tracking run",
        "INFO trainer: step 7 loss 2.1",
        "Source file: src/a.cpp (line 7)",
        "Program:     solver, version 3",
    ],
)
def test_other_lines_of_the_console_are_not_the_sentence(between: str) -> None:
    """The sentence of a line that ends with a colon stands behind what others printed between them."""
    text = f"Fatal error:\n{between}\nparticles left the cell of their group"
    ending = dataclasses.replace(fact(text), kind="ending")
    assert extract_headline(ending, load_rules()).text == "Fatal error: particles left the cell of their group"


def test_the_version_of_a_program_is_not_the_sentence() -> None:
    """A version in brackets behind the colon leaves the line open."""
    ending = dataclasses.replace(fact("--> FATAL ERROR: (solver-2212)\nentry dt is absent"), kind="ending")
    assert extract_headline(ending, load_rules()).text == "--> FATAL ERROR: entry dt is absent"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "System.NullReferenceException: Object reference not set\n   at Shop.Stock.Count() in /s.cs:line 7",
            "Unhandled exception. System.NullReferenceException: Object reference not set\n"
            "   at System.Linq.Enumerable.First()\n   at Shop.Stock.Count() in /s.cs:line 9",
        ),
        (
            "At line 7 of file src/halo.f90\nFortran runtime error: End of file",
            "forrtl: severe (24): end-of-file during read, unit 7, file /a\nImage  PC  Routine  Line  Source\n"
            "flow   0000000000401  pack_halo_   7  halo.f90",
        ),
        (
            "[n7:2] *** MPI_ERR_TYPE: invalid datatype\n[n7:2] *** An error occurred in MPI_Bcast",
            "Fatal error in PMPI_Bcast: Invalid datatype, error stack:\nPMPI_Bcast(1600): failed",
        ),
    ],
)
def test_one_cause_in_two_runtimes_is_one(one: str, other: str) -> None:
    """Compilers, releases and implementations of a standard word a cause in their own way, and print its place."""
    assert fingerprint(fact(one)).key == fingerprint(fact(other)).key


def test_functions_of_other_names_stay_apart_where_they_are_mangled() -> None:
    """The name distinguishes, the types of its arguments do not."""
    one, other = (
        fingerprint(fact(f"ImportError: undefined symbol: {name}")) for name in ("_ZN2at3addEif", "_ZN2at3subEif")
    )
    assert one.key != other.key


def test_lines_of_other_programs_and_tags_of_ranks_are_no_part_of_last_lines() -> None:
    """A progress bar between two lines of a failure, and the rank that a program writes before each."""
    lines = "--> FOAM FATAL IO ERROR:\nkeyword maxCo is undefined\nfile: a.dict"
    tagged = "\n".join(f"[3] {line}" for line in lines.split("\n"))
    mixed = lines.replace("\n", "\nTraining:  62%|██████    | 310/500\n", 1)
    texts = (lines, tagged, mixed, f"{tagged}\nworker 4 is up")
    keys = {fingerprint(dataclasses.replace(fact(text), kind="ending")).key for text in texts}
    assert len(keys) == 1
    other = tagged.replace("[3] keyword", "[4] keyword")
    assert fingerprint(dataclasses.replace(fact(other), kind="ending")).key not in keys
