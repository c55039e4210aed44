"""Writes what documents take from the program: the session in README.md, docs/signature-index.md, docs/ranks.md, the
addresses in
docs/api.md, the settings in docs/operating.md, docs/signatures/, and signatures/lock.tsv, the record of revisions.
`make docs` runs it.

tests/test_docs.py and tests/catalog/test_pages.py fail when any of them is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import triage
from triage.catalog import lock, page_files
from triage.catalog.load import load
from triage.catalog.model import Signature
from triage.catalog.signature_files import list_signature_files
from triage.ranks.file_names import FILE_NAMINGS
from triage.ranks.file_prefixes import FILE_PREFIXES
from triage.ranks.grammar import Grammar
from triage.ranks.grammars import GRAMMARS
from triage.ranks.log_wrappers import LOG_WRAPPERS
from triage.render import catalog_pages as written
from triage.render import text

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "samples/jobs/dataloader_worker_killed_tee/job"
SESSION = re.compile(rf"(?<=```console\n)\$ triage ingest {re.escape(SAMPLE)}\n.*?(?=```)", re.DOTALL)
# The time a run took alone makes no new session.
SECONDS = re.compile(r"\d+\.\d s ·")
LINES_OF_A_SECTION = 5
INDEX_HEAD = """# Index of signatures

Written by `make docs` from `signatures/`; do not edit. `triage catalog show ID` says what a signature means, what to do and what
it looks for. [What the roles mean](signatures.md#roles).
"""
SETTINGS = "| setting | default | what it is |\n|---|---|---|"
ADDRESSES = "## Every address of the API"
BROWSER = (
    "## Addresses for browsers\n\nThe data of each page is also there as JSON, at its address with `.json` behind it."
)


def session() -> str:
    """The command and what it prints, long sections cut with `…`. To be run in the root of the checkout."""
    quicker = min(
        (triage.ingest(SAMPLE) for _ in range(2)), key=lambda diagnosis: diagnosis.stats.seconds
    )  # the first compiles the catalog
    report = text.render(quicker, width=100)
    sections = [section.split("\n") for section in report.rstrip("\n").split("\n\n")]
    shown = [
        "\n".join([*lines[:LINES_OF_A_SECTION], *(["…"] if len(lines) > LINES_OF_A_SECTION else [])])
        for lines in sections
    ]
    return f"$ triage ingest {SAMPLE}\n" + "\n\n".join(shown) + "\n"


def index(shipped: Sequence[Signature]) -> str:
    """One table a domain: id with a link to its page, role, title."""
    parts = [INDEX_HEAD]
    for domain in sorted({signature.domain for signature in shipped}):
        rows = [
            f"| [`{signature.id}`](signatures/{signature.id}.md) | {signature.role} | {_cell(signature.title)} |"
            for signature in sorted(shipped, key=lambda signature: signature.id)
            if signature.domain == domain and not signature.table
        ]
        rows += [
            f"| [`{name}`](signatures/{name}.md) | table | {len(codes)} codes |"
            for name, codes in written.tables(shipped).items()
            if name.partition(".")[0] == domain
        ]
        parts.append(f"\n## {domain}\n\n| signature | role | title |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "".join(parts)


def shipped() -> Sequence[Signature]:
    """The signatures of this checkout. Files that cannot be used raise CatalogError."""
    found = load(shipped=ROOT / "signatures").signatures
    assert len({signature.table or signature.id for signature in found}) == len(
        list_signature_files(ROOT / "signatures")
    )
    return found


RANKS_HEAD = """# Supported layouts

Written by `make docs` from `triage/ranks/`; do not edit. A line can have several layouts, one inside the other:
`[default2]:[rank2]: …` has two. Each provides parts of the origin of the line: who wrote it and when. The inner layout
overrides the outer one, and what no layout provides stays unknown.

A layout of kind *writer* precedes all lines of one process, so lines of other writers in between are skipped. One of
kind *record* starts a message that may have further lines. A *carrier* precedes every line, whoever wrote it.

Some layouts also change the text. Where the change can be recognized, it is reverted:

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
    page += [*_layouts([prefix.grammar for prefix in FILE_PREFIXES]), "\n## Around the line\n"]
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
    return "".join(page)


def _layouts(grammars: Sequence[Grammar]) -> list[str]:
    rows = ["\n| layout | kind | example | provides | since |\n|---|---|---|---|---|\n"]
    for grammar in grammars:
        provided = ", ".join([*grammar.origin_parts, *(["time"] if grammar.has_time else [])]) or "nothing"
        rows.append(
            f"| {_cell(grammar.name)} | {grammar.kind} | {_code(grammar.example)} | {provided} | {grammar.since} |\n"
        )
    return rows


def _code(sample: str) -> str:
    """The first lines of a sample as code in a cell."""
    return " ⏎ ".join(f"`{line.replace('|', chr(92) + '|')}`" for line in sample.rstrip("\n").split("\n")[:4] if line)


def _cell(title: str) -> str:
    return title.replace("|", "\\|").replace("<", "&lt;")


def addresses() -> str:
    """The addresses of the service as tables: the API's, then those for browsers."""
    from triage.service import api, hooks
    from triage.service import pages as web
    from triage.service.api.openapi import PREFIX, Route, list_routes

    def table(found: Sequence[Route]) -> str:
        names = {route.path for route in found}
        rows = [
            f"| `{'`, `'.join(route.methods)}` | `{route.path}` | {route.role or '–'} | {_cell(route.summary)} |"
            for route in found
            if route.path.removesuffix(".json") == route.path or route.path.removesuffix(".json") not in names
        ]
        return "| methods | address | role | what it does |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"

    browser = table(list(list_routes((*web.ROUTERS, hooks.router))))
    return f"{ADDRESSES}\n\n{table(list(list_routes(api.ROUTERS, PREFIX)))}\n{BROWSER}\n\n{browser}"


def settings() -> str:
    """Every setting with its default, section by section."""
    from pydantic import BaseModel

    from triage.settings import Settings
    from triage.settings.sections import Source

    def rows(name: str, kind: type[BaseModel]) -> list[str]:
        return [
            f"| `{name}.{field}` | {_default(info.get_default(call_default_factory=True))} | {_cell(info.description or '')} |"
            for field, info in kind.model_fields.items()
        ]

    kinds = {name: info.annotation for name, info in Settings.model_fields.items() if name != "sources"}
    found = [row for name, kind in kinds.items() if isinstance(kind, type) for row in rows(name, kind)]
    return "\n".join([SETTINGS, *found, *rows("sources.NAME", Source)]) + "\n"


def _default(value: object) -> str:
    if hasattr(value, "get_secret_value") or value in (None, "", (), {}) or "Undefined" in type(value).__name__:
        return "–"
    return f"`{json.dumps(value)}`"


def main() -> None:
    """Rewrite all of them."""
    operating = ROOT / "docs" / "operating.md"
    operating.write_text(operating.read_text(encoding="utf-8").partition(SETTINGS)[0] + settings(), encoding="utf-8")
    service = ROOT / "docs" / "api.md"
    service.write_text(service.read_text(encoding="utf-8").partition(ADDRESSES)[0] + addresses(), encoding="utf-8")
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = SESSION.sub(lambda _: session(), old, count=1)
    if SECONDS.sub("", new) != SECONDS.sub("", old):
        readme.write_text(new, encoding="utf-8")
    record = ROOT / "signatures" / lock.LOCK
    record.write_text(lock.format_lock(shipped(), lock.read_lock(record.parent)), encoding="utf-8")
    (ROOT / "docs" / "signature-index.md").write_text(index(shipped()), encoding="utf-8")
    (ROOT / "docs" / "ranks.md").write_text(ranks(), encoding="utf-8")
    page_files.write_pages(ROOT / "docs" / "signatures", written.pages(shipped()), written.MARK)


if __name__ == "__main__":
    import os

    os.chdir(ROOT)
    main()
