"""The documents match the program: sessions, commands, examples, tables, links and promises."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import triage
from tests.render.factories import INCONCLUSIVE
from triage.catalog.check import check_files
from triage.model import diagnosis as diagnosis_model
from triage.model.evidence import Evidence, Origin
from triage.render import json as as_json

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "RELEASING.md",
    ROOT / "SECURITY.md",
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
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def generator(name: str = "generate") -> ModuleType:
    """Return docs/generate.py, or another script of docs/, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def tables(page: Path) -> dict[str, set[str]]:
    """Return for each heading the names in backticks that begin the rows of the tables below it."""
    names_by_heading: dict[str, set[str]] = {}
    for section in re.split(r"^## ", read(page), flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        names_by_heading[heading] = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    return names_by_heading


def normalise(session: str) -> str:
    """Return a session without durations, versions and line breaks."""
    phrases = " ".join(session.split())
    phrases = re.sub(r"\d+\.\d s\b", "N s", phrases)
    return re.sub(r"catalog \S+ · triage \S+", "catalog C · triage T", phrases)


def test_readme_is_short() -> None:
    """README has fewer than 170 lines of at most 140 characters."""
    lines = read(README).splitlines()
    assert len(lines) < 170
    assert max(map(len, lines)) <= 140


def test_session_of_readme_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """README shows what the command prints; `make docs` updates it."""
    monkeypatch.chdir(ROOT)
    module = generator()
    shown = module.SESSION.search(read(README))
    assert shown, "README has no session with the sample"
    assert normalise(shown[0]) == normalise(module.session()), "run `make docs` and read what it wrote"


def test_make_targets_exist() -> None:
    """Every `make …` in a document is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|\$ )make ([a-z-]+)", read(page))}
    assert {"demo", "test"} <= named <= targets


def test_demo_shows_the_session_of_readme() -> None:
    """`make demo` diagnoses the sample that README shows, and the sample exists."""
    sample = generator().SAMPLE
    assert f"\nSAMPLE := {sample}\n" in read(ROOT / "Makefile")
    assert (ROOT / sample).is_dir()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_resolve(page: Path) -> None:
    """Every link names a file of the checkout, and its fragment a heading of that file."""
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
    """Return the link fragments of a page's headings."""
    lines = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_every_page_is_linked_from_the_index() -> None:
    """docs/README.md links every other page of docs/, and README links the index and the tutorial."""
    linked = set(re.findall(r"\]\(([\w-]+\.md)[#)]", read(ROOT / "docs" / "README.md")))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} == linked
    assert {"docs/README.md", "docs/tutorial.md"} <= set(re.findall(r"\]\((docs/[\w-]+\.md)[#)]", read(README)))


def test_tutorial_is_current() -> None:
    """docs/tutorial.md shows what its commands print; `make docs` updates it."""
    page = read(ROOT / "docs" / "tutorial.md")
    written = generator().tutorial(page)
    assert len(re.findall(r"^\$ (?:triage|tail) .*\n[^`$]", written, re.MULTILINE)) > 5
    assert normalise(written) == normalise(page), "run `make docs` and read what it wrote"


def test_architecture_picture_is_current() -> None:
    """docs/img/architecture.svg shows the packages and their imports; `make docs` draws it again."""
    architecture = generator("architecture")
    assert read(architecture.PICTURE) == architecture.draw(), "run `make docs`"


def test_python_of_readme_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The example prints what README says, on a recorded job."""
    (code,) = blocks(read(README), "python")
    monkeypatch.chdir(ROOT)
    code = code.replace("job_logs/", generator().SAMPLE)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own document
    assert capsys.readouterr().out.startswith("known data.worker-killed (1,)")


@pytest.mark.parametrize("name", ["python.md", "slack.md"])
def test_python_of_pages_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every Python example runs without an error."""
    monkeypatch.chdir(ROOT)
    examples = blocks(read(ROOT / "docs" / name), "python")
    assert examples
    for code in examples:
        exec(compile(code, name, "exec"), {})  # noqa: S102 - our own document


def test_commands_of_documents_exist() -> None:
    """Every `$ triage …` in a document uses an existing command and existing options."""
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
        match = re.search(
            r"(?:^\$|\|) (?:\S*/)?triage "
            r"((?:catalog |clusters |db |config |token |outbox |post |bot )?[a-z]+)((?: [^|]*)?)",
            line,
        )
        if match:
            existing = options_of(match[1])
            missing = [option for option in re.findall(r"(?<= )--?[a-z][a-z-]*", match[2]) if option not in existing]
            assert not missing, f"{line}: {missing}"


@functools.cache
def options_of(command: str) -> set[str]:
    """Return the options in the help of a command."""
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
    """docs/signature-index.md lists every signature; `make docs` updates it."""
    module = generator()
    assert read(ROOT / "docs" / "signature-index.md") == module.index(module.shipped()), "run `make docs`"


def test_the_list_of_sources_is_current() -> None:
    """docs/signature-sources.md lists the causes and costly actions without a reference; `make docs` updates it."""
    module = generator()
    page = module.sources(module.shipped())
    assert read(ROOT / "docs" / "signature-sources.md") == page, "run `make docs`"
    assert "of 0 such" not in page


def test_the_page_of_layouts_is_current() -> None:
    """docs/ranks.md has a row for every supported prefix, log wrapper and file naming."""
    assert read(ROOT / "docs" / "ranks.md") == generator().ranks(), "run `make docs`"


def keys_by_object() -> dict[str, list[set[str]]]:
    """Return the keys of every object in the reports of SAMPLES, by the object's name in docs/json.md."""
    keys: dict[str, list[set[str]]] = {}
    local = Evidence("message", "app", "text", Origin(local_rank=1), "log", 0)
    reports: list[dict[str, Any]] = [
        as_json.document(triage.ingest(str(ROOT / "samples" / "jobs" / name / "job"))) for name in SAMPLES
    ]
    known = triage.ingest(str(ROOT / "samples" / "jobs" / SAMPLES[0] / "job"))
    assert known.root_cause is not None
    labelled = replace(known.job, facts={"team": ("vision",)})
    several = replace(known, job=labelled, root_cause=replace(known.root_cause, alongside=("u-1",)))
    reports += [as_json.document(INCONCLUSIVE), as_json.document(several)]
    for name, item in (
        ("Evidence", as_json.evidence(local)),
        *(pair for report in reports for pair in objects(report)),
    ):
        keys.setdefault(name, []).append(set(item))
    return keys


def objects(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object of a report with its name in docs/json.md."""
    yield "Report", report
    yield "Tool", report["tool"]
    yield "Job", report["job"]
    yield "Stats", report["stats"]
    for finding in [*([report["root_cause"]] if report["root_cause"] else []), *report["findings"]]:
        yield "Finding", finding
        yield "Remediation", finding["remediation"]
    if report["inconclusive"]:
        yield "Inconclusive", report["inconclusive"]
        for line in [*report["inconclusive"]["last_lines"], *report["inconclusive"]["unusual_lines"]]:
            yield "Final line", line
    for key, name in (("unknown", "Unknown"), ("timeline", "Moment"), ("ranks", "Rank"), ("warnings", "Warning")):
        for item in report[key]:
            yield name, item
    for holder in [*report["findings"], *report["unknown"]]:
        for item in holder["evidence"]:
            yield "Evidence", item


def test_json_document_names_every_key() -> None:
    """docs/json.md documents every key of every object, and no other; an optional key is marked `only`."""
    documented = {name: keys for name, keys in tables(ROOT / "docs" / "json.md").items() if keys}
    objects_keys = keys_by_object()
    assert {name: set().union(*keys) for name, keys in objects_keys.items()} == documented
    rows = read(ROOT / "docs" / "json.md")
    optional = {
        (name, key) for name, keys in objects_keys.items() for key in set().union(*keys) - set.intersection(*keys)
    }
    for name, key in optional:
        assert re.search(rf"^\| `{key}` \|[^|]*\| only ", rows, re.MULTILINE), f"{name}.{key} is not always there"


@pytest.mark.parametrize("key", ["verdict", "role", "severity", "state"])
def test_json_document_names_every_value(key: str) -> None:
    """docs/json.md lists all values of a key that has a fixed set of values."""
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


def test_example_signature_is_valid(tmp_path: Path) -> None:
    """The first file shown in docs/signatures.md passes `triage catalog check`."""
    example, *_ = blocks(read(ROOT / "docs" / "signatures.md"), "yaml")
    identifier = re.search(r"^id: (\S+)$", example, re.MULTILINE)
    assert identifier
    path = tmp_path / f"{identifier[1].replace('.', '/', 1)}.yaml"
    path.parent.mkdir()
    path.write_text(example, encoding="utf-8")
    assert [str(problem) for problem in check_files([path]) if problem.severity != "info"] == []


def test_every_section_of_a_report_is_explained() -> None:
    """docs/reading-a-diagnosis.md has a row for each section label, each mark and each verdict of the text format."""
    page = read(ROOT / "docs" / "reading-a-diagnosis.md")
    from triage.render import phrases

    source = read(ROOT / "triage" / "render" / "text.py")
    labels = set(re.findall(r"section\(\s*\"([^\"]+)\"", source)) | {"Ranks", "Considered", "Earlier", "Symptoms"}
    assert len(labels) > 8
    assert {label for label in labels if f"\n| {label} |" not in page} == set()
    marks = phrases.STATE_MARKS.items()
    assert {mark for state, mark in marks if f"| `{mark}` | {state} |" not in page} == set()
    assert {kind for kind in get_args(phrases.VerdictKind) if f"| `{kind}` |" not in page} == set()


# The one module that loads pickles: it first checks that they have only opcodes of plain data
# (tests/artifacts/flight/test_load.py).
# The one that loads pickles, without running code in them; and the one that writes dumps for the composed jobs.
PICKLES = (
    ROOT / "triage" / "artifacts" / "flight" / "safe_unpickler.py",
    ROOT / "triage" / "testing" / "schedules" / "evidence" / "flight.py",
)
# The packages that open connections and start processes; they may not load pickles or run code either.
FACES = ("service", "bots", "fetch", "watch", "testing")
LOADERS = {"pickle", "marshal", "shelve"}
CONNECTIONS = {"socket", "subprocess", "urllib", "http", "ftplib", "ssl", "requests", "asyncio", "multiprocessing"}
CALLS = {"eval", "exec", "system", "popen", "extractall", "unsafe_load", "full_load"}
ARCHIVES = {"tarfile", "zipfile"}


def imported_modules(node: ast.AST) -> list[str]:
    """Return the top-level names of the modules that a statement imports."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
    return [name.partition(".")[0] for name in names]


def refused_uses(path: Path) -> Iterator[str]:
    """Yield what a module of triage imports or calls against docs/security.md."""
    face = path.relative_to(ROOT / "triage").parts[0] in FACES
    refused = (LOADERS if face else LOADERS | CONNECTIONS) - ({"pickle"} if path in PICKLES else set())
    nodes = list(ast.walk(ast.parse(read(path))))
    imported = [name for node in nodes for name in imported_modules(node)]
    calls = CALLS | ({"extract"} if ARCHIVES & set(imported) else set())
    yield from (f"{path.name}: {name}" for name in imported if name in refused)
    for node in nodes:
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in calls:
                yield f"{path.name}: {called}()"


def test_security_page_is_true() -> None:
    """Outside the faces only `remote` opens connections; one module loads pickles, one starts gdb, with limits.

    One compiles `__init__` and copies of the package's dataclasses, from the names of their fields, as the standard
    library does.
    """
    uses = [use for path in sorted((ROOT / "triage").rglob("*.py")) for use in refused_uses(path)]
    remote = ["filesystems.py: asyncio", "guarded_http.py: socket", "guarded_http.py: urllib"]
    assert uses == ["limited_process.py: subprocess", "lazy_dataclass.py: exec()", *remote]
    assert set(re.findall(r"pickle\.(\w+)", read(PICKLES[1]))) == {"dumps"}


def test_changelog_names_this_version() -> None:
    """CHANGELOG.md has an entry for the package's version."""
    assert triage.__version__ in read(ROOT / "CHANGELOG.md")
