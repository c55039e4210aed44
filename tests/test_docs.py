from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import triage
from triage.catalog.check import check
from triage.model import diagnosis as diagnosis_model
from triage.model.evidence import Evidence, Origin
from triage.render import json as as_json

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "samples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
# Known and unknown failures, symptoms only, a handled exception, an archive, several attempts, warnings.
SAMPLES = (
    "dataloader_worker_killed_tee",
    "exception_one_rank_tee",
    "sigkill_perrank",
    "healthy_handled_plain",
    "shape_mismatch_detail_archive",
    "bad_arguments_tee",
)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def generator() -> ModuleType:
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def tables(page: Path) -> dict[str, set[str]]:
    """For each heading, the words in backticks that begin the rows of the tables below it."""
    found: dict[str, set[str]] = {}
    for section in re.split(r"^## ", read(page), flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        found[heading] = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    return found


def normalised(session: str) -> str:
    """Without what differs from run to run and from release to release; line breaks do not count."""
    words = " ".join(session.split())
    words = re.sub(r"\d+\.\d s\b", "N s", words)
    return re.sub(r"catalog \S+ · triage \S+", "catalog C · triage T", words)


def test_readme_is_short() -> None:
    """One screen after another ends it: under 170 lines, none of them endless."""
    lines = read(README).splitlines()
    assert len(lines) < 170
    assert max(map(len, lines)) <= 140


def test_session_of_readme_is_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """README shows what the command prints today; `make docs` writes it again."""
    monkeypatch.chdir(ROOT)
    module = generator()
    shown = module.SESSION.search(read(README))
    assert shown, "README has no session with the sample"
    assert normalised(shown[0]) == normalised(module.session()), "run `make docs` and read what it wrote"


def test_make_targets_exist() -> None:
    """Every `make …` in a document is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|\$ )make ([a-z-]+)", read(page))}
    assert {"demo", "test"} <= named <= targets


def test_demo_shows_the_session_of_readme() -> None:
    """`make demo` diagnoses the sample of README, and it exists."""
    sample = generator().SAMPLE
    assert f"\nSAMPLE := {sample}\n" in read(ROOT / "Makefile")
    assert (ROOT / sample).is_dir()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_resolve(page: Path) -> None:
    """A link leads to a file of the checkout, and its fragment to a heading there."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (fragment and fragment not in headings(path)):
            broken.append(target)
    assert broken == []


def headings(page: Path) -> set[str]:
    """The fragments by which the headings of a page are reached."""
    lines = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_every_page_is_linked_from_readme() -> None:
    """Nobody has to list docs/ to find a page."""
    linked = set(re.findall(r"\]\((docs/[\w-]+\.md)[#)]", read(README)))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} == linked


def test_python_of_readme_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The example does what it says, on a real job."""
    (code,) = blocks(read(README), "python")
    monkeypatch.chdir(ROOT)
    exec(compile(code.replace("job_logs/", generator().SAMPLE), "README.md", "exec"), {})  # noqa: S102 - our own document
    assert capsys.readouterr().out.startswith("known data.worker-killed (1,)")


@pytest.mark.parametrize("name", ["python.md", "slack.md"])
def test_python_of_pages_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every example in Python is a program that ends well."""
    monkeypatch.chdir(ROOT)
    found = blocks(read(ROOT / "docs" / name), "python")
    assert found
    for code in found:
        exec(compile(code, name, "exec"), {})  # noqa: S102 - our own document


def test_commands_of_documents_exist() -> None:
    """Every `$ triage …` names a command and options that its help offers."""
    lines = [line for page in PAGES for block in blocks(read(page), "console") for line in block.splitlines()]
    commands = {
        match[0]
        for line in lines
        for match in re.findall(
            r"\btriage ((?:catalog |clusters |db )?(?:ingest|show|explain|env|list|check|schema))\b(?= )", line
        )
        if match
    }
    assert commands
    for line in lines:
        found = re.search(
            r"(?:^\$|\|) (?:\S*/)?triage ((?:catalog |clusters |db |config |token |outbox |post |bot )?[a-z]+)((?: [^|]*)?)",
            line,
        )
        if found:
            offered = help_of(found[1])
            missing = [option for option in re.findall(r"(?<= )--?[a-z][a-z-]*", found[2]) if option not in offered]
            assert not missing, f"{line}: {missing}"


def help_of(command: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-m", "triage", *command.split(), "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(re.findall(r"(?<!\w)--?[a-z][a-z-]*", result.stdout))


def test_signature_index_is_current() -> None:
    """docs/signature-index.md lists every signature; `make docs` writes it again."""
    module = generator()
    assert read(ROOT / "docs" / "signature-index.md") == module.index(module.shipped()), "run `make docs`"


def test_the_page_of_layouts_is_what_make_docs_writes() -> None:
    """docs/ranks.md has a row for every prefix, wrapping and way to call a file that is understood."""
    assert read(ROOT / "docs" / "ranks.md") == generator().ranks(), "run `make docs`"


def produced() -> dict[str, list[set[str]]]:
    """The keys of every object in the reports of SAMPLES, by what docs/json.md calls the object."""
    found: dict[str, list[set[str]]] = {}
    local = Evidence("message", "app", "text", Origin(local_rank=1), "log", 0)
    reports: list[dict[str, Any]] = [
        as_json.document(triage.ingest(str(ROOT / "samples" / "jobs" / name / "job"))) for name in SAMPLES
    ]
    for name, item in (
        ("Evidence", as_json.evidence(local)),
        *(pair for report in reports for pair in objects(report)),
    ):
        found.setdefault(name, []).append(set(item))
    return found


def objects(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a report with its name in the document."""
    yield "Report", report
    yield "Tool", report["tool"]
    yield "Job", report["job"]
    yield "Stats", report["stats"]
    for finding in [*([report["root_cause"]] if report["root_cause"] else []), *report["findings"]]:
        yield "Finding", finding
        yield "Remediation", finding["remediation"]
    for key, name in (("unknown", "Unknown"), ("timeline", "Moment"), ("ranks", "Rank"), ("warnings", "Warning")):
        for item in report[key]:
            yield name, item
    for holder in [*report["findings"], *report["unknown"]]:
        for item in holder["evidence"]:
            yield "Evidence", item


def test_json_document_names_the_keys_that_are_produced() -> None:
    """docs/json.md documents every key of every object, and no other; a key that may be missing says `only`."""
    documented = {name: keys for name, keys in tables(ROOT / "docs" / "json.md").items() if keys}
    found = produced()
    assert {name: set().union(*keys) for name, keys in found.items()} == documented
    rows = read(ROOT / "docs" / "json.md")
    optional = {(name, key) for name, seen in found.items() for key in set().union(*seen) - set.intersection(*seen)}
    for name, key in optional:
        assert re.search(rf"^\| `{key}` \|[^|]*\| only ", rows, re.MULTILINE), f"{name}.{key} is not always there"


@pytest.mark.parametrize("key", ["verdict", "role", "severity", "state"])
def test_json_document_names_every_value(key: str) -> None:
    """Where a text can only be one of a few words, the document lists them all."""
    holder = {
        "verdict": diagnosis_model.Diagnosis,
        "role": diagnosis_model.Finding,
        "severity": diagnosis_model.Finding,
        "state": diagnosis_model.RankState,
    }[key]
    row = re.search(rf"^\| `{key}` \|.*$", read(ROOT / "docs" / "json.md"), re.MULTILINE)
    assert row
    values = set(get_args(get_type_hints(holder)[key])) - {"guide"}  # a guide never matches
    assert {value for value in values if f"`{value}`" not in row[0]} == set()


def test_signature_document_names_the_keys_of_the_schema() -> None:
    """docs/signatures.md documents every key of signatures/schema.json in its table, and no other."""
    schema = json.loads(read(ROOT / "signatures" / "schema.json"))
    parts = {name: set(part["properties"]) for name, part in schema["definitions"].items()}
    documented = tables(ROOT / "docs" / "signatures.md")
    assert documented["Keys"] == set(schema["properties"])
    assert documented["Match"] == parts["Condition"] | parts["Leaf"]
    assert documented["Leads to"] == parts["Edge"]
    assert documented["Remediation"] == parts["Remediation"]
    assert documented["Samples"] == parts["Samples"] | parts["MatchSample"] | parts["NoMatchSample"]
    section = read(ROOT / "docs" / "signatures.md").partition("## Tables of codes")[2]
    of_tables = json.loads(read(ROOT / "signatures" / "table.schema.json"))
    keys = {*of_tables["properties"], *of_tables["definitions"]["Row"]["properties"]}
    assert {key for key in keys if f"`{key}`" not in section} == set()
    assert documented["Roles"] == set(schema["properties"]["role"]["enum"])


def test_example_signature_is_sound(tmp_path: Path) -> None:
    """The file shown in docs/signatures.md passes `triage catalog check`."""
    (example,) = blocks(read(ROOT / "docs" / "signatures.md"), "yaml")
    identifier = re.search(r"^id: (\S+)$", example, re.MULTILINE)
    assert identifier
    path = tmp_path / f"{identifier[1].replace('.', '/', 1)}.yaml"
    path.parent.mkdir()
    path.write_text(example, encoding="utf-8")
    assert [str(problem) for problem in check([path]) if problem.severity != "info"] == []


def test_every_section_of_a_report_is_explained() -> None:
    """docs/reading-a-diagnosis.md has a row for each label that the text format can print, each mark and each verdict."""
    page = read(ROOT / "docs" / "reading-a-diagnosis.md")
    from triage.render import words

    source = read(ROOT / "triage" / "render" / "text.py")
    labels = set(re.findall(r"section\(\s*\"([^\"]+)\"", source)) | {
        "Ranks",
        *re.findall(r"label = \"([^\"]+)\" if .* else \"[^\"]+\"", source),
    }
    assert len(labels) > 8
    assert {label for label in labels if f"\n| {label} |" not in page} == set()
    assert {
        mark for mark, state in ((m, s) for s, m in words.STATE_MARKS.items()) if f"| `{mark}` | {state} |" not in page
    } == set()
    assert {kind for kind in get_args(words.Kind) if f"| `{kind}` |" not in page} == set()


# The one module that loads pickles, after it has seen that they hold no opcode but those of plain data;
# tests/artifacts/flight/test_load.py.
PICKLES = ROOT / "triage" / "artifacts" / "flight" / "opcodes.py"


# The rooms whose work is connections and processes; `testing`, which no room imports, has servers for tests. What they
# may not do either:
# load pickles, run code.
FACES = ("service", "bots", "watch", "testing")
LOADERS = {"pickle", "marshal", "shelve"}


def test_security_page_is_true() -> None:
    """No module but the service and the bots can open a connection, none loads a pickle, one alone starts programs: the
    cage of gdb.
    """
    banned = {
        "socket",
        "subprocess",
        "pickle",
        "marshal",
        "shelve",
        "urllib",
        "http",
        "ftplib",
        "ssl",
        "requests",
        "asyncio",
        "multiprocessing",
    }
    calls = {"eval", "exec", "system", "popen", "extractall", "extract", "unsafe_load", "full_load"}
    found = []
    for path in sorted((ROOT / "triage").rglob("*.py")):
        face = path.relative_to(ROOT / "triage").parts[0] in FACES
        refused = (banned & LOADERS if face else banned) - ({"pickle"} if path == PICKLES else set())
        for node in ast.walk(ast.parse(read(path))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found += [f"{path.name}: {name}" for name in names if name.partition(".")[0] in refused]
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                found += [f"{path.name}: {called}()"] if called in calls else []
    assert found == ["engine.py: subprocess"]


def test_changelog_tells_of_this_version() -> None:
    """The version of the package has its words in CHANGELOG.md."""
    assert triage.__version__ in read(ROOT / "CHANGELOG.md")
