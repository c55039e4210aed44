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
from triage.catalog import lock, pages
from triage.catalog.files import files
from triage.catalog.load import load
from triage.catalog.model import Signature
from triage.ranks.envelopes import ENVELOPES
from triage.ranks.files import NAMINGS
from triage.ranks.grammars import GRAMMARS, Grammar
from triage.ranks.habits import HABITS
from triage.render import pages as written
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
    assert len({signature.table or signature.id for signature in found}) == len(files(ROOT / "signatures"))
    return found


RANKS_HEAD = """# Layouts that are understood

Written by `make docs` from `triage/ranks/`; do not edit. A line can lie in several of these, one in the other: `[default2]:[rank2]: …` is two.
Each tells what it knows of who wrote the line and when. The inner one knows better than the outer one, and what nothing tells stays unknown.

A layout of kind *writer* stands before all lines of one process, so that lines of others in between are passed over. One of kind *record*
opens a message that may have further lines. A *carrier* stands before every line, whoever wrote it.

Some layouts also change the text, and where it decides how, that is taken back:

- **Cut lines.** srun --label, logger and syslog write a line of more than 1,024 bytes (logger of BusyBox and BSD: 1,023) as several, each behind
  its prefix. They are joined, also by `triage split`, where what follows goes on within a word, behind a comma or in another piece of full length;
  behind a label of srun always. A line of just that length stays alone where nothing says that it goes on, or where longer lines are near.
- **Escaped lines.** Behind syslog's prefix `#012` is a newline.
- **Two writers in a line.** A second prefix in the middle begins another writer's text. Without prefixes the same words by up to eight writers
  (`RuntimeErrorRuntimeError: : NCCL …`) are taken apart where exactly one text fits; else the line stays as it is and is said to be ambiguous.
- **Labels that are no ranks.** `1: ` is a task, not rank 1, where torchrun or DeepSpeed's launcher speaks behind it, or torch's tags or local ranks
  behind it are other numbers. Local ranks that several files share and no host goes with are no ranks, which a warning says.
"""


def ranks() -> str:
    """What the rooms know of prefixes, wrappings and names of files, as tables."""
    told = [RANKS_HEAD, "\n## Before every line\n", *_layouts(GRAMMARS)]
    told += [
        "\n## Before most lines of a file\n\nThese could be text elsewhere. They count where most lines of a file have them.\n"
    ]
    told += [*_layouts([habit.grammar for habit in HABITS]), "\n## Around the line\n"]
    told += ["\n| layout | example | tells | since |\n|---|---|---|---|\n"]
    told += [
        f"| {envelope.name} | {_code(envelope.sample)} | {envelope.says} | {envelope.since} |\n"
        for envelope in ENVELOPES
    ]
    told += ["\n## Names of files and folders\n", "\n| layout | example | tells | since |\n|---|---|---|---|\n"]
    for naming in NAMINGS:
        says = ", ".join(
            key
            for key in ("rank", "local_rank", "host", "pid", "stream", "attempt", "task")
            if key in naming.pattern.groupindex
        )
        told.append(f"| {naming.name} | {_code(naming.samples[0])} | {says} | {naming.since} |\n")
    return "".join(told)


def _layouts(grammars: Sequence[Grammar]) -> list[str]:
    rows = ["\n| layout | kind | example | tells | since |\n|---|---|---|---|---|\n"]
    for grammar in grammars:
        says = ", ".join([*grammar.says, *(["time"] if grammar.timed else [])]) or "nothing"
        rows.append(
            f"| {_cell(grammar.name)} | {grammar.kind} | {_code(grammar.example)} | {says} | {grammar.since} |\n"
        )
    return rows


def _code(sample: str) -> str:
    """The first lines of a sample as code in a cell."""
    return " ⏎ ".join(f"`{line.replace('|', chr(92) + '|')}`" for line in sample.rstrip("\n").split("\n")[:4] if line)


def _cell(title: str) -> str:
    return title.replace("|", "\\|").replace("<", "&lt;")


def addresses() -> str:
    """The addresses of the service as tables: the API's, then those for browsers."""
    from triage.service import api, auth, hooks
    from triage.service import pages as web
    from triage.service.document import PREFIX, Route, routes

    def table(found: Sequence[Route]) -> str:
        names = {route.path for route in found}
        rows = [
            f"| `{'`, `'.join(route.methods)}` | `{route.path}` | {route.role or '–'} | {_cell(route.summary)} |"
            for route in found
            if route.path.removesuffix(".json") == route.path or route.path.removesuffix(".json") not in names
        ]
        return "| methods | address | role | what it does |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"

    browser = table(list(routes((*web.ROUTERS, *auth.ROUTERS, *hooks.ROUTERS))))
    return f"{ADDRESSES}\n\n{table(list(routes(api.ROUTERS, PREFIX)))}\n{BROWSER}\n\n{browser}"


def settings() -> str:
    """Every setting with its default, section by section."""
    from pydantic import BaseModel

    from triage.settings.model import Settings
    from triage.settings.sources import Source

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
    record.write_text(lock.text(shipped(), lock.read(record.parent)), encoding="utf-8")
    (ROOT / "docs" / "signature-index.md").write_text(index(shipped()), encoding="utf-8")
    (ROOT / "docs" / "ranks.md").write_text(ranks(), encoding="utf-8")
    pages.write(ROOT / "docs" / "signatures", written.pages(shipped()), written.MARK)


if __name__ == "__main__":
    import os

    os.chdir(ROOT)
    main()
