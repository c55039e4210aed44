"""The classes of frames are files that a person edits; mistakes are told with file and line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from triage.stacks import rules
from triage.stacks.names import normal


@pytest.mark.parametrize(
    ("function", "label", "kind"),
    [
        ("__pthread_kill_implementation", "abort", "abort"),
        ("malloc_printerr", "abort", "heap-corruption"),
        ("__GI___assert_fail", "abort", "assert"),
        ("std::terminate()", "abort", "exception"),
        (
            "c10::detail::torchCheckFail(char const*, char const*, unsigned int, std::string const&)",
            "abort",
            "exception",
        ),
        ("<signal handler called>", "signal", ""),
        ("__memmove_avx_unaligned_erms", "memory", ""),
        ("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)", "glue", ""),
        ("_PyEval_EvalFrameDefault", "interpreter", ""),
        ("clone3", "thread-base", ""),
        ("pthread_cond_wait@@GLIBC_2.3.2", "idle", ""),
        ("c10d::ProcessGroupNCCL::watchdogHandler()", "watchdog", ""),
    ],
)
def test_shipped_classes(function: str, label: str, kind: str) -> None:
    """The classes hold what they are named after."""
    rule = rules.shipped().find(normal(function), "")
    assert rule is not None
    assert (rule.label, rule.kind) == (label, kind)


def test_a_library_limits_a_rule() -> None:
    """`@LIBRARY` holds only where the library is known to be that one."""
    assert rules.shipped().find("main", "") is None
    assert rules.shipped().find("main", "train") is None
    assert rules.shipped().find("main", "python").label == "interpreter"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a -> B C", "no rule"),
        ("*", "drop every frame"),
        ("a*b*c*d*e*f", "four"),
        ("abort", "already"),
        ("foo @ bar", "no rule"),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, line: str, words: str) -> None:
    """A bad line is an error with its file and number, and what to write instead."""
    directory = tmp_path / "rules"
    shutil.copytree(rules.HERE, directory)
    file = directory / "abort.txt"
    count = len(file.read_text(encoding="utf-8").splitlines())
    file.write_text(file.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(rules.RuleError, match=words) as caught:
        rules.load(directory)
    assert (caught.value.path, caught.value.line) == (str(file), count + 1)
    assert caught.value.hint


def test_mistakes_in_error_classes_have_a_line(tmp_path: Path) -> None:
    """So has a class of errors without its arrow."""
    directory = tmp_path / "rules"
    shutil.copytree(rules.HERE, directory)
    (directory / "errors.txt").write_text("# words\nillegal memory access\n", encoding="utf-8")
    with pytest.raises(rules.RuleError) as caught:
        rules.load(directory)
    assert caught.value.line == 2


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """A directory without its files is an error, not a traceback."""
    with pytest.raises(rules.RuleError):
        rules.load(tmp_path)
