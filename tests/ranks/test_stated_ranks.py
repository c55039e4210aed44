"""triage.ranks.stated_ranks"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.ranks.stated_ranks import PEERS, SUBJECTS, StatedForm, read_stated_ranks

EXAMPLES = [(form, example) for form in SUBJECTS for example in form.examples]


@pytest.mark.parametrize(("form", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_each_form_reads_its_examples(form: StatedForm, example: str) -> None:
    """The first form that fits decides, and gives a number."""
    stated = read_stated_ranks(example)
    assert (stated.form, stated.part) == (form.name, form.part)
    assert stated.numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Entry-HcclCommInitRootInfoInner:ranks[2], rank[1], rootinfo: host ip[10.0.0.1]", ()),
        ("Task run failed, groupRank information is group:[tp], rankSize[2], rankId[1].", ()),
        ("wait socket establish timeout, role[1] rank[1] timeout[120]", ()),
        ("Entry-HcclCommInitClusterInfo:clusterInfo[rank_table.json], rank[1], deviceLogicId[1]", (1,)),
    ],
)
def test_numbers_of_members_are_no_ranks(text: str, numbers: tuple[int, ...]) -> None:
    """A number within one of HCCL's communicators is a rank only in the one of all ranks."""
    assert read_stated_ranks(text).numbers == numbers


@pytest.mark.parametrize("example", [example for _, examples, _ in PEERS for example in examples])
def test_a_peer_is_never_the_subject(example: str) -> None:
    """A rank that sends, is awaited or is absent did not write the text; nor is every number behind `rank` a rank."""
    assert not read_stated_ranks(example).numbers


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("Rank 3 timed out waiting for rank 5", (3,)),
        ("INFO hello from rank 5 of 12 (host node1)", (5,)),
        ("Hello world from rank 3, received a greeting from rank 2", (3,)),
        ("received a message from rank 5", ()),
        ("[Rank 3] waiting for rank 5", (3,)),
        ("rank 1 received 3 bytes from rank 2", (1,)),
        ("send to rank 3 failed on rank 1", (1,)),
        ("[Rank 0]: Rank 3 failed to pass monitoredBarrier in 1000 ms", (0,)),
        ("Ranks 3, 5 failed to pass monitoredBarrier in 1000 ms", ()),
        ("timed out receiving tensor from rank 13", ()),
        ("Connection reset by rank 3", ()),
        ("Broadcast from root rank 0 failed", ()),
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", ()),
        ("size mismatch: got rank=2 and rank=3", ()),
        ("expected a tensor of rank 3 but got rank 4", ()),
        ("[PG ID 2 PG GUID 5(tp) Rank 1] Process group watchdog thread terminated", ()),
        ("Invalid rank: 9, world size 8", ()),
        ("frank 3", ()),
    ],
)
def test_subjects_are_told_from_objects(text: str, ranks: tuple[int, ...]) -> None:
    """A text with a subject and a peer names the subject; with two ranks in the same role it names none."""
    assert read_stated_ranks(text).numbers == ranks


def test_the_number_of_a_monitored_barrier_is_no_tag() -> None:
    """Its process group may be a small one, which numbers its own ranks."""
    assert not read_stated_ranks("[Rank 0]: Rank 3 failed to pass monitoredBarrier in 1000 ms").is_tag
    assert read_stated_ranks("[Rank 0]: Rank 3 failed").is_tag


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("save failed on ranks dict_keys([3, 4])", (3, 4)),
        ("errors on ranks 3 and 5", (3, 5)),
        ("bad shards on ranks 3-7", (3, 4, 5, 6, 7)),
        ("ranks [3, 5, 6] ran out of memory", (3, 5, 6)),
        ("Rank 1 failed: boom. Rank 2 failed: boom.", (1, 2)),
        ("RANK 3 FAILED", (3,)),
    ],
)
def test_all_failed_ranks_of_a_text_are_read(text: str, ranks: tuple[int, ...]) -> None:
    """Lists, ranges and several sentences name every rank."""
    assert read_stated_ranks(text).numbers == ranks


def test_a_local_rank_and_a_device_are_no_ranks() -> None:
    """They have their own part, so that only a node makes ranks of them."""
    assert read_stated_ranks("boom on local rank 3").part == "local_rank"
    assert read_stated_ranks("CUDA out of memory. GPU 5 has a total capacity of 79.10 GiB").part == "device"


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """No text raises, and a number is read only where the text has one."""
    stated = read_stated_ranks(text + " rank")
    assert not stated.numbers or any(letter.isdigit() for letter in text)


def test_only_a_tag_or_a_greeting_names_its_writer() -> None:
    """Other forms may be about a rank that another one reports; only reports may name several."""
    tags = {form.name for form in SUBJECTS if form.is_tag}
    assert tags == {"tag at the start", "tag in brackets", "greeting"}
    reports = {form.name for form in SUBJECTS if form.may_repeat}
    assert reports == {"heading of a report", "place of a failure", "subject of a sentence"}


def test_a_form_with_two_different_numbers_is_no_clear_statement() -> None:
    """Nor does a weaker form decide then."""
    assert read_stated_ranks("boom world_rank=1, world_rank=2: NaN on rank 3").numbers == ()
    assert read_stated_ranks("boom world_rank=1: NaN on rank 3").numbers == (1,)


def test_at_most_4096_ranks_are_read() -> None:
    """The first ones."""
    assert read_stated_ranks("failed on ranks 0-4095").numbers == tuple(range(4096))
    assert read_stated_ranks("failed on ranks 0-4096").numbers == tuple(range(4096))
