"""The files of frame classes: their content, and errors with file and line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from triage.stacks import rules
from triage.stacks.names import normalise_function


@pytest.mark.parametrize(
    ("function", "label", "kind"),
    [
        ("__pthread_kill_implementation", "abort", "abort"),
        ("malloc_printerr", "abort", "heap-corruption"),
        ("__GI___assert_fail", "abort", "assert"),
        ("std::terminate()", "abort", "exception"),
        ("google::CheckNotNull<>()", "abort", "check"),
        ("google::CheckOpMessageBuilder::NewString()", "abort", "check"),
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
    """Functions belong to the class that describes them."""
    rule = rules.shipped_rules().find(normalise_function(function), "")
    assert rule is not None
    assert (rule.label, rule.kind) == (label, kind)


def test_library_limits_a_rule() -> None:
    """A rule with `@LIBRARY` only matches frames of that library."""
    assert rules.shipped_rules().find("main", "") is None
    assert rules.shipped_rules().find("main", "train") is None
    assert rules.shipped_rules().find("main", "python").label == "interpreter"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a -> B C", "not a rule"),
        ("*", "drop every frame"),
        ("a*b*c*d*e*f", "four"),
        ("abort", "already"),
        ("foo @ bar", "not a rule"),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, line: str, message: str) -> None:
    """A wrong line gives an error with file, line and hint."""
    directory = tmp_path / "rules"
    shutil.copytree(rules.DIRECTORY, directory)
    file = directory / "abort.txt"
    count = len(file.read_text(encoding="utf-8").splitlines())
    file.write_text(file.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(rules.RuleError, match=message) as caught:
        rules.load_rules(directory)
    assert (caught.value.path, caught.value.line) == (str(file), count + 1)
    assert caught.value.hint


def test_mistakes_in_error_classes_have_a_line(tmp_path: Path) -> None:
    """A class of errors without an arrow gives an error with its line."""
    directory = tmp_path / "rules"
    shutil.copytree(rules.DIRECTORY, directory)
    (directory / "errors.txt").write_text("# words\nillegal memory access\n", encoding="utf-8")
    with pytest.raises(rules.RuleError) as caught:
        rules.load_rules(directory)
    assert caught.value.line == 2


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    """A directory without its files gives a RuleError."""
    with pytest.raises(rules.RuleError):
        rules.load_rules(tmp_path)
