"""Write the parts of the documents that are generated from the program; `make docs` runs it.

These are the session in README.md, the outputs in docs/tutorial.md, docs/signature-index.md, docs/signature-sources.md,
docs/ranks.md, the addresses in docs/api.md, the settings in docs/operating.md, docs/signatures/,
docs/img/architecture.svg, and signatures/lock.tsv, the record of revisions. tests/test_docs.py and
tests/catalog/test_page_files.py fail when any of them is out of date.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import triage
from triage.catalog import lock, page_files
from triage.catalog.lint_advice import needs_reference
from triage.catalog.load import load
from triage.catalog.model import Signature
from triage.catalog.signature_files import list_signature_files
from triage.diagnose.placement_reasons import REASONS
from triage.ranks.file_names import FILE_NAMINGS
from triage.ranks.file_prefixes import FILE_PREFIXES, PROGRAM_TAGS
from triage.ranks.grammar import Grammar
from triage.ranks.grammars import GRAMMARS
from triage.ranks.log_wrappers import LOG_WRAPPERS
from triage.ranks.stated_ranks import PEERS, SUBJECTS
from triage.render import catalog_pages, text

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "samples/jobs/dataloader_worker_killed_tee/job"
SESSION = re.compile(rf"(?<=```console\n)\$ triage ingest {re.escape(SAMPLE)}\n.*?(?=```)", re.DOTALL)
# A session that differs in its duration only is not written again.
SECONDS = re.compile(r"\d+\.\d s ·")
LINES_OF_A_SECTION = 5
CONSOLE = re.compile(r"(?<=```console\n)\$ (?:triage|tail) .*?(?=```)", re.DOTALL)
TUTORIAL_LINES = 9  # of a section: a report has several sections, most other outputs have one
INDEX_HEAD = """# Index of signatures

Written by `make docs` from `signatures/`; do not edit. `triage catalog show ID` shows what a signature means, what to
do and what it matches. [What the roles mean](signatures.md#roles).
"""
SOURCES_HEAD = """# Sources of the signatures

Written by `make docs` from `signatures/`; do not edit. Each cause and each costly action (drain a node, reset a GPU,
contact the vendor) should have a reference that says it: a page of the vendor, a source file, or a public thread. The
page of each signature in the [index](signature-index.md) lists its references.
"""
SETTINGS = "| setting | default | what it is |\n|---|---|---|"
ADDRESSES = "## Every address of the API"
BROWSER = "## Addresses for browsers\n\nThe data of each page is also available as JSON: append `.json` to its address."


def session() -> str:
    """Return the command and its output, with long sections cut with `…`. Needs the checkout's root as directory."""
    quicker = min(
        (triage.ingest(SAMPLE) for _ in range(2)), key=lambda diagnosis: diagnosis.stats.seconds
    )  # the first compiles the catalog
    return f"$ triage ingest {SAMPLE}\n" + _shorten(text.render(quicker, width=100, verbose=False), LINES_OF_A_SECTION)


def _shorten(output: str, most: int) -> str:
    """Return the output with at most `most` lines of each section, then `…`."""
    sections = [section.split("\n") for section in output.rstrip("\n").split("\n\n")]
    shown = ["\n".join([*lines[:most], *(["…"] if len(lines) > most else [])]) for lines in sections]
    return "\n\n".join(shown) + "\n" if output else ""


def tutorial(page: str) -> str:
    """Return the page with the present outputs of the commands in its console blocks.

    The commands run in a temporary directory with a link to the samples, so they write neither to the checkout nor to
    the user's store.
    """
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "samples").symlink_to(ROOT / "samples")
        _run(directory, ["triage catalog list"])  # compiles the catalog

        def fill(block: re.Match[str]) -> str:
            commands = [line.removeprefix("$ ") for line in block[0].splitlines() if line.startswith("$ ")]
            outputs = _run(directory, commands)
            return "".join(f"$ {command}\n{output}" for command, output in zip(commands, outputs, strict=True))

        return CONSOLE.sub(fill, page)


def _run(directory: str, commands: Sequence[str]) -> list[str]:
    """Return the shortened output of each command. All run in one shell, so that `$?` is the status of the previous."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRIAGE_", "XDG_"))}
    environment |= {"HOME": directory, "TRIAGE_STORE": f"{directory}/store.db", "PYTHONPATH": str(ROOT)}
    environment |= {"COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    separator = "\x1e"
    lines = [f'triage() {{ "{sys.executable}" -m triage "$@"; }}']
    for command in commands:
        lines += [command, f"(status=$?; printf '{separator}'; exit $status)"]
    shell = ["sh", "-c", "\n".join(lines)]
    result = subprocess.run(shell, cwd=directory, env=environment, capture_output=True, check=False)
    outputs = result.stdout.decode().split(separator)[:-1]
    if result.stderr or len(outputs) != len(commands):
        raise RuntimeError(f"{'; '.join(commands)}: {result.stderr.decode()}")
    return [_shorten(output, TUTORIAL_LINES) for output in outputs]


def index(shipped: Sequence[Signature]) -> str:
    """Return one table per domain: id with a link to its page, role, title."""
    parts = [INDEX_HEAD]
    for domain in sorted({signature.domain for signature in shipped}):
        rows = [
            f"| [`{signature.id}`](signatures/{signature.id}.md) | {signature.role} | {_cell(signature.title)} |"
            for signature in sorted(shipped, key=lambda signature: signature.id)
            if signature.domain == domain and not signature.table
        ]
        rows += [
            f"| [`{name}`](signatures/{name}.md) | table | {len(codes)} codes |"
            for name, codes in catalog_pages.group_code_tables(shipped).items()
            if name.partition(".")[0] == domain
        ]
        parts.append(f"\n## {domain}\n\n| signature | role | title |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "".join(parts)


def sources(shipped: Sequence[Signature]) -> str:
    """Return how many claims have a reference, and a table of those without one."""
    claims = {one.table or one.id: one for one in shipped if needs_reference(one)}
    without = {name: one for name, one in sorted(claims.items()) if not one.references}
    parts = [
        SOURCES_HEAD,
        f"\n{len(claims) - len(without)} of {len(claims)} such signatures and tables have a reference.\n",
    ]
    if without:
        rows = [
            f"| [`{name}`](signatures/{name}.md) | {one.role} | {one.action} | {_cell(one.title)} |\n"
            for name, one in without.items()
        ]
        parts += ["\n## Without a reference\n\n| signature | role | action | title |\n|---|---|---|---|\n", *rows]
    return "".join(parts)


def shipped() -> Sequence[Signature]:
    """Return the signatures of this checkout. Raises CatalogError for invalid files."""
    signatures = load(shipped=ROOT / "signatures").signatures
    names = {signature.table or signature.id for signature in signatures}
    assert len(names) == len(list_signature_files(ROOT / "signatures"))
    return signatures


HOST_NAMES = """
## Names of hosts

A host may have several names: its own, the name of its pod, an address, that of the directory or file of its logs. They
become one where lines show two of them together and with no other: a prefix within another, a file named after one
whose lines name another, a process that says `rank 3 of 8 on node1` behind the prefix of a pod. A name that stands
before the lines of several hosts is that of a collector, and is no host. The report shows the machine's own name.

A name such as `train-a100-20.txt` may mean anything. Where lines show that `a100-20` is a host, files whose names
differ from this one only in the numbers of the host are of the hosts that they name.
"""
RANK_LADDER = """
## How a fact gets its rank

The prefix of its line comes first. Where it names no rank, these steps are tried in this order, and the report's `why`
says which one decided. A step that leaves more than one rank possible decides nothing. Of a tag that a text begins
with, and a map that says otherwise, the tag decides and a warning says so; tags of process groups number the members
of a group, so for them maps come first. A file name never makes the world larger: its number is dropped where no line
and no sibling supports it. Other numbers in names (`worker-3.log`) are ranks where the names differ only in them, and
there is a file for each rank of the stated world, or two processes call themselves by that number and none by another
(`process 3 of 4`, Gloo's `Rank 3 is connected to 3 peer ranks`). Names above the given path say nothing. A local rank
becomes a rank by its node: its index is stated (`--node_rank 1`, `--machine_rank 1`, `SLURM_NODEID=1`), its other ranks
show it, or all nodes have numbered names (`node_0/`, `node_1/`), and the world is a multiple of the processes per node.
"""
RANKS_HEAD = """# Supported layouts

Written by `make docs` from `triage/ranks/`; do not edit. A line can have several layouts, one inside the other:
`[default2]:[rank2]: …` has two. Each provides parts of the origin of the line: who wrote it and when. The inner layout
overrides the outer one, and what no layout provides stays unknown.

A layout of kind *writer* precedes all lines of one process, so lines of other writers in between are skipped. One of
kind *record* starts a message that may have further lines. A *carrier* precedes every line, whoever wrote it.

Some layouts also change the text. If the change can be recognised, it is reverted:

- **Cut lines.** srun --label, logger and syslog write a line of more than 1,024 bytes (logger of BusyBox and BSD:
  1,023) as several, each behind its prefix. They are joined, also by `triage split`, where the next line continues
  within a word, behind a comma or with another piece of full length; behind a label of srun always. A line of exactly
  that length stays alone where nothing shows that it continues, or where longer lines are near.
- **Escaped lines.** Behind syslog's prefix `#012` is a newline.
- **Two writers in a line.** A second prefix in the middle starts another writer's text. Without prefixes, the same
  words by up to eight writers (`RuntimeErrorRuntimeError: : NCCL …`) are separated where exactly one text fits;
  otherwise the line stays as it is and is marked as ambiguous.
- **Labels that are not ranks.** `1: ` is a task, not rank 1, where lines of torchrun or DeepSpeed's launcher follow
  it, or where torch's tags or local ranks behind it have other numbers. Local ranks that several files share without a
  host are not ranks, which a warning says.
"""


def ranks() -> str:
    """Return the page of supported prefixes, log wrappers and file names, as tables."""
    page = [RANKS_HEAD, "\n## Before every line\n", *_layouts(GRAMMARS)]
    page += [
        "\n## Before most lines of a file\n\n"
        "Elsewhere these could be text. They count where most lines of a file have them.\n"
    ]
    page += [*_layouts([prefix.grammar for prefix in (*FILE_PREFIXES, *PROGRAM_TAGS)]), "\n## Around the line\n"]
    page += ["\n| layout | example | provides | since |\n|---|---|---|---|\n"]
    page += [
        f"| {wrapper.name} | {_code(wrapper.sample)} | {wrapper.provides} | {wrapper.since} |\n"
        for wrapper in LOG_WRAPPERS
    ]
    page += ["\n## Names of files and folders\n", "\n| layout | example | provides | since |\n|---|---|---|---|\n"]
    for naming in FILE_NAMINGS:
        provided = ", ".join(
            key
            for key in ("rank", "local_rank", "host", "pid", "stream", "attempt", "task")
            if key in naming.pattern.groupindex
        )
        page.append(f"| {naming.name} | {_code(naming.samples[0])} | {provided} | {naming.since} |\n")
    return "".join([*page, *_ladder()])


def _ladder() -> list[str]:
    """Return how a fact gets its rank, and the words in which a text names one."""
    rows = [HOST_NAMES, RANK_LADDER, "\n| step | what the report says |\n|---|---|\n"]
    rows += [f"| {basis} | {_cell(reason)} |\n" for basis, reason in REASONS.items()]
    rows += ["\n## Words that name a rank\n", "\n| form | examples | names |\n|---|---|---|\n"]
    rows += [f"| {form.name} | {_code(chr(10).join(form.examples))} | {form.part} |\n" for form in SUBJECTS]
    rows += ["\nThese name a peer or no rank of the job, and are never taken for the writer:\n\n"]
    return [*rows, *(f"- {name}: {_code(chr(10).join(examples))}\n" for name, examples, _ in PEERS)]


def _layouts(grammars: Sequence[Grammar]) -> list[str]:
    rows = ["\n| layout | kind | example | provides | since |\n|---|---|---|---|---|\n"]
    for grammar in grammars:
        provided = ", ".join([*grammar.origin_parts, *(["time"] if grammar.has_time else [])]) or "nothing"
        rows.append(
            f"| {_cell(grammar.name)} | {grammar.kind} | {_code(grammar.example)} | {provided} | {grammar.since} |\n"
        )
    return rows


def _code(sample: str) -> str:
    """Return the first lines of a sample as code in a table cell."""
    return " ⏎ ".join(f"`{line.replace('|', chr(92) + '|')}`" for line in sample.rstrip("\n").split("\n")[:4] if line)


def _cell(title: str) -> str:
    return title.replace("|", "\\|").replace("<", "&lt;")


def addresses() -> str:
    """Return the addresses of the service as tables: the API's, then those for browsers."""
    from triage.service import api, hooks, pages as web
    from triage.service.api.openapi import PREFIX, Route, list_routes

    def table(routes: Sequence[Route]) -> str:
        paths = {route.path for route in routes}
        rows = [
            f"| `{'`, `'.join(route.methods)}` | `{route.path}` | {route.role or '–'} | {_cell(route.summary)} |"
            for route in routes
            if route.path.removesuffix(".json") == route.path or route.path.removesuffix(".json") not in paths
        ]
        return "| methods | address | role | what it does |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"

    browser = table(list(list_routes((*web.ROUTERS, hooks.router))))
    return f"{ADDRESSES}\n\n{table(list(list_routes(api.ROUTERS, PREFIX)))}\n{BROWSER}\n\n{browser}"


def settings() -> str:
    """Return a table of all settings with their defaults, section by section."""
    from pydantic import BaseModel

    from triage.settings import Settings
    from triage.settings.sections import Source

    def rows(name: str, kind: type[BaseModel]) -> list[str]:
        fields = kind.model_fields.items()
        defaults = {field: _default(info.get_default(call_default_factory=True)) for field, info in fields}
        return [f"| `{name}.{field}` | {defaults[field]} | {_cell(info.description or '')} |" for field, info in fields]

    kinds = {name: info.annotation for name, info in Settings.model_fields.items() if name != "sources"}
    all_rows = [row for name, kind in kinds.items() if isinstance(kind, type) for row in rows(name, kind)]
    return "\n".join([SETTINGS, *all_rows, *rows("sources.NAME", Source)]) + "\n"


def _default(value: object) -> str:
    if hasattr(value, "get_secret_value") or value in (None, "", (), {}) or "Undefined" in type(value).__name__:
        return "–"
    return f"`{json.dumps(value)}`"


def _update(path: Path, change: Callable[[str], str]) -> None:
    """Change a page, unless only durations differ."""
    old = path.read_text(encoding="utf-8")
    new = change(old)
    if SECONDS.sub("", new) != SECONDS.sub("", old):
        path.write_text(new, encoding="utf-8")


def main() -> None:
    """Write all generated parts."""
    import architecture  # docs/ is on the path of a script

    operating = ROOT / "docs" / "operating.md"
    operating.write_text(operating.read_text(encoding="utf-8").partition(SETTINGS)[0] + settings(), encoding="utf-8")
    service = ROOT / "docs" / "api.md"
    service.write_text(service.read_text(encoding="utf-8").partition(ADDRESSES)[0] + addresses(), encoding="utf-8")
    _update(ROOT / "README.md", lambda page: SESSION.sub(lambda _: session(), page, count=1))
    _update(ROOT / "docs" / "tutorial.md", tutorial)
    architecture.PICTURE.write_text(architecture.draw(), encoding="utf-8")
    record = ROOT / "signatures" / lock.LOCK
    record.write_text(lock.format_lock(shipped(), lock.read_lock(record.parent)), encoding="utf-8")
    (ROOT / "docs" / "signature-index.md").write_text(index(shipped()), encoding="utf-8")
    (ROOT / "docs" / "signature-sources.md").write_text(sources(shipped()), encoding="utf-8")
    (ROOT / "docs" / "ranks.md").write_text(ranks(), encoding="utf-8")
    page_files.write_pages(ROOT / "docs" / "signatures", catalog_pages.render_pages(shipped()), catalog_pages.MARK)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
