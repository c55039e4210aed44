"""Lines that failed a pattern by little look like a new wording; others look like nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from tests.catalog.factories import evidence
from triage.catalog.match import evaluate_signature
from triage.catalog.model import Catalog, Clause, Leaf, Signature
from triage.catalog.near_misses import (
    LEAST_TORN,
    MAX_CHARACTERS,
    MAX_WORDS,
    MOST_CHANGES,
    MOST_COMPARED,
    MOST_LEAVES,
    MOST_LEAVES_OF_WORD,
    MOST_NAMED,
    WORDS_PER_CHANGE,
    NearMissIndex,
    describe_near_misses,
)

COUNT = 400  # signatures: a word of one of them has the weight log(401) = 6, of 40 of them 2.3
TERMS = [f"{start}{vowel}{end}" for start in ("zorb", "quim", "fland", "drux") for vowel in "aeiou" for end in "lmn"]


def signature(*leaves: Leaf | Clause, identifier: str = "test.case", **keys: object) -> Signature:
    """Return a signature of these leaves, any of which makes it hold."""
    values: dict[str, object] = {"status": "stable", "role": "cause", **keys}
    return Signature(identifier, 1, "A case", severity="fatal", match=Clause("any", leaves), **values)  # type: ignore[arg-type]


FILLERS = [signature(Leaf(text=f"filler{n}"), identifier=f"test.filler-{n}") for n in range(COUNT)]


def find(text: str, *signatures: Signature) -> list[str]:
    """Return the near misses among these signatures and hundreds of others."""
    index = NearMissIndex([*FILLERS[len(signatures) :], *signatures])
    return [miss.signature.id for miss in index.find(text)]


def find_terms(terms: Sequence[str], changed: Sequence[str]) -> bool:
    """Whether a text of the changed words looks like a new wording of a pattern of the words."""
    return find(" ".join(changed), signature(Leaf(text=" ".join(terms)))) == ["test.case"]


@pytest.mark.parametrize(
    ("line", "signature_id", "sentence"),
    [
        ("CUDA Out-Of-Memory. tried to allocate 2.00 GiB", "cuda.out-of-memory", "only case, punctuation or values"),
        (
            "NCCL error in ProcessGroupNCCL.cpp:1275, remote process has exited or there was a network error.",
            "nccl.remote-error",
            "with 'has'",
        ),
        (
            "NCCL error in ProcessGroupNCCL.cpp:1275, remote proces exited, or there was a network error",
            "nccl.remote-error",
            "'proces' for 'process'",
        ),
    ],
)
def test_new_wordings_of_shipped_signatures(catalog: Catalog, line: str, signature_id: str, sentence: str) -> None:
    """Lines that no signature matches, and what they look like."""
    misses = NearMissIndex(catalog.signatures).find(line)
    assert [miss.signature.id for miss in misses] == [signature_id]
    assert evaluate_signature(misses[0].signature, [evidence(line)]) is None
    assert sentence in describe_near_misses(misses)


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: image size 224 is not divisible by patch size 16",
        "RuntimeError: boom",
        "AssertionError: the learning rate must be positive",
        "FileNotFoundError: the config of the experiment does not exist",
        "TimeoutError: timed out after 8 seconds",
        "",
    ],
)
def test_other_failures_look_like_nothing(catalog: Catalog, line: str) -> None:
    """Common words are no likeness."""
    assert NearMissIndex(catalog.signatures).find(line) == ()


@pytest.mark.parametrize(
    "changed",
    [
        "ZORBAL ZORBAM ZORBAN ZORBEL",
        "zorbal: zorbam/zorban, (zorbel)",
        "zorbal zorbam_zorban-zorbel",
        "zorbal very zorbam zorban zorbel",
        "zorbal zrbam zorban zorbel",
        "zorbal zorbam 17 zorban zorbel",
        "RuntimeError: [rank 3] zorbal very zorbam zorban zorbel for 5 s",
    ],
)
def test_small_changes_are_found(changed: str) -> None:
    """Case, punctuation, an inserted word or number, a torn letter, any text around it."""
    assert find_terms(TERMS[:4], [changed])


@pytest.mark.parametrize(
    "changed",
    [
        "zorbam zorbal zorban zorbel",
        "zorbal zorbam zorban",
        "zorbal zorbam zorban other",
        "zorbal was not zorbam zorban zorbel",
        "zorbal not zorbam zorban zorbel",
        "zorbal zrbam zorban zorbl",
    ],
)
def test_other_changes_are_not(changed: str) -> None:
    """Another order, a missing or another rare word, a negation, two changes in four words."""
    assert not find_terms(TERMS[:4], [changed])


def test_the_pattern_itself_decides_first() -> None:
    """A text that the pattern matches, or that the signature excludes, is no new wording."""
    text = " ".join(TERMS[:4])
    assert find(text, signature(Leaf(text=text))) == []
    assert find(f"{text.upper()} again", signature(Leaf(text=text, not_text="again"))) == []
    clause = Clause("any", (Leaf(text=text),), none=(Leaf(text="again"),))
    excluding = Signature("test.case", 1, "A case", "stable", "cause", "fatal", clause)
    assert find(f"{text.upper()} again", excluding) == []
    assert find(f"{text.upper()} once", excluding) == ["test.case"]


def test_a_code_or_a_name_is_never_torn() -> None:
    """Codes and names in capitals that differ in one character are others."""
    for known, other in (("CODE507015", "CODE507018"), ("SIGKILL", "SIGILL"), ("507015", "507018")):
        assert not find_terms([*TERMS[:4], known], [*TERMS[:4], other])
        assert find_terms([*TERMS[:4], known], [*TERMS[:3], "very", TERMS[3], known])


@pytest.mark.parametrize(
    ("leaf", "keys"),
    [
        (Leaf(text=" ".join(TERMS[:4])), {"role": "noise"}),
        (Leaf(text=" ".join(TERMS[:4])), {"status": "deprecated"}),
        (Leaf(kind="inference", text=" ".join(TERMS[:4])), {}),
        (Leaf(text=" ".join(TERMS[:4]), values={"code": ("1",)}), {}),
        (Clause("all", (Leaf(text=" ".join(TERMS[:4])), Leaf(text="context"))), {}),
    ],
)
def test_what_names_no_failure_by_its_text_is_left_out(leaf: Leaf | Clause, keys: dict[str, object]) -> None:
    """Noise, withdrawn signatures, inferences, rows of tables, and a part of an `all`."""
    assert find(" ".join(TERMS[:4]).upper(), signature(leaf, **keys)) == []
    assert find(" ".join(TERMS[:4]).upper(), signature(Leaf(text=" ".join(TERMS[:4])))) == ["test.case"]


def test_a_wording_needs_weight() -> None:
    """Two rare words are in a line by chance, three are not."""
    assert not find_terms(TERMS[:1], ["very", TERMS[0].upper()])
    assert find_terms(TERMS[:3], [TERMS[0].upper(), *TERMS[1:3]])
    common = [signature(Leaf(text=" ".join(TERMS[:3])), identifier=f"test.other-{n}") for n in range(9)]
    assert find(" ".join(TERMS[:3]).upper(), *common) == []  # three words of weight 3.8 each


def test_the_number_of_changes_grows_with_the_words() -> None:
    """One change up to seven words, two from eight on, and never more than three."""
    for count in (WORDS_PER_CHANGE, 2 * WORDS_PER_CHANGE - 1, 2 * WORDS_PER_CHANGE, 5 * WORDS_PER_CHANGE):
        allowed = min(count // WORDS_PER_CHANGE, MOST_CHANGES)
        for changes in (allowed, allowed + 1):
            inserted = [f"very {term}" if 0 < place <= changes else term for place, term in enumerate(TERMS[:count])]
            assert find_terms(TERMS[:count], inserted) == (changes <= allowed), (count, changes)


def test_only_longer_words_are_torn() -> None:
    """One letter of five may be wrong; a shorter word would be another word."""
    for term, is_near in (("z" * (LEAST_TORN - 2) + "ab", True), ("z" * (LEAST_TORN - 3) + "ab", False)):
        assert find_terms([*TERMS[:3], term], [*TERMS[:3], term[:-1] + "x"]) == is_near


def test_a_lacking_word_is_a_light_one() -> None:
    """One word of seven is less than 15 % of the weight, one of six is more."""
    assert find_terms(TERMS[:7], [*TERMS[:3], *TERMS[4:7]])
    assert not find_terms(TERMS[:6], [*TERMS[:3], *TERMS[4:6]])


def test_most_of_the_weight_must_be_there() -> None:
    """A torn word is no likeness where it has most of the weight."""
    shared = [signature(Leaf(text="common words stand here"), identifier=f"test.other-{n}") for n in range(99)]
    heavy = signature(Leaf(text="common words stand here zorbal"))
    assert find("common words stand here zrbal", heavy, *shared) == []  # 6 of 11.5
    lighter = signature(Leaf(text="common words stand here zorbal quimal"))
    assert find("common words stand here zrbal quimal", lighter, *shared) == ["test.case"]  # 6 of 17.5


def test_only_the_start_of_a_text_is_compared() -> None:
    """What stands behind the first thousand characters is not seen."""
    text = " ".join(TERMS[:4]).upper()
    one = signature(Leaf(text=text.lower()))
    assert find(" " * (MAX_CHARACTERS - len(text)) + text, one) == ["test.case"]
    assert find(" " * (MAX_CHARACTERS - len(text) + len(TERMS[3])) + text, one) == []


def test_words_of_many_leaves_select_nothing() -> None:
    """Six words that 40 signatures share lead to them, not those that more share."""
    for count, is_near in ((MOST_LEAVES_OF_WORD, True), (MOST_LEAVES_OF_WORD + 1, False)):
        same = [signature(Leaf(text=" ".join(TERMS[:6])), identifier=f"test.case-{n}") for n in range(count)]
        assert bool(find(" ".join(TERMS[:6]).upper(), *same)) == is_near


def test_a_text_of_many_words_is_cut() -> None:
    """The first 120 words are compared."""
    one = signature(Leaf(text=" ".join(TERMS[:3])))
    for count, is_near in ((MAX_WORDS - 3, True), (MAX_WORDS - 2, False)):
        assert bool(find("x " * count + " ".join(TERMS[:3]).upper(), one)) == is_near


def test_only_the_likeliest_wordings_are_compared() -> None:
    """Wordings of the same words in another order take the places of those that are compared."""
    one = signature(Leaf(text=" ".join(TERMS[:4])), identifier="test.last")
    for count, is_near in ((MOST_COMPARED - 1, True), (MOST_COMPARED, False)):
        others = [
            signature(Leaf(text=" ".join(reversed(TERMS[:4]))), identifier=f"test.case-{n}") for n in range(count)
        ]
        assert bool(find(" ".join(TERMS[:4]).upper(), *others, one)) == is_near


def test_only_the_likeliest_patterns_are_read() -> None:
    """Patterns that share more of a text's words, in another order, take the places of those that are read."""
    one = signature(Leaf(text=" ".join(TERMS[:3])), identifier="test.a")
    groups = (TERMS[3:13], TERMS[13:23])
    text = " ".join([*TERMS[:3], *groups[0], *groups[1]]).upper()
    for count, is_near in ((MOST_LEAVES - 1, True), (MOST_LEAVES, False)):
        leaves = [Leaf(text=" ".join(reversed(groups[n % 2]))) for n in range(count)]
        others = [signature(leaf, identifier=f"test.case-{n}") for n, leaf in enumerate(leaves)]
        assert bool(find(text, one, *others)) == is_near


def test_equally_near_signatures_are_named_together() -> None:
    """At most three, in the order of their ids; one that is nearer stands alone."""
    same = [signature(Leaf(text=" ".join(TERMS[:5])), identifier=f"test.case-{n}") for n in range(MOST_NAMED + 1)]
    text = f"very {' '.join(TERMS[:5])}".upper()
    assert find(text, *same[:2]) == ["test.case-0", "test.case-1"]
    assert find(text, *same) == [f"test.case-{n}" for n in range(MOST_NAMED)]
    farther = signature(Leaf(text=" ".join([*TERMS[:3], "also", *TERMS[3:5]])), identifier="test.a")
    assert find(text, farther, same[0]) == ["test.case-0"]


def test_a_hostile_text_takes_bounded_time(catalog: Catalog) -> None:
    """The longest text of nearly right words is compared in a fraction of a second."""
    index = NearMissIndex(catalog.signatures)
    text = "watchdog caught collective operation timeuot timeout colective watchdg " * 1000
    started = time.process_time()
    index.find(text)
    assert time.process_time() - started < 1
