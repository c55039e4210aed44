"""Writes what documents take from the program: the session in README.md, docs/signature-index.md, docs/signatures/, and
signatures/lock.tsv, the record of revisions. `make docs` runs it.

tests/test_docs.py and tests/catalog/test_pages.py fail when any of them is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import triage
from triage.catalog import lock, pages
from triage.catalog.files import files
from triage.catalog.load import load
from triage.catalog.model import Signature
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


def session() -> str:
    """The command and what it prints, long sections cut with `…`. To be run in the root of the checkout."""
    report = text.render(triage.ingest(SAMPLE), width=100)
    sections = [section.split("\n") for section in report.rstrip("\n").split("\n\n")]
    shown = ["\n".join([*lines[:LINES_OF_A_SECTION], *(["…"] if len(lines) > LINES_OF_A_SECTION else [])]) for lines in sections]
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


def _cell(title: str) -> str:
    return title.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Rewrite all of them."""
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = SESSION.sub(lambda _: session(), old, count=1)
    if SECONDS.sub("", new) != SECONDS.sub("", old):
        readme.write_text(new, encoding="utf-8")
    record = ROOT / "signatures" / lock.LOCK
    record.write_text(lock.text(shipped(), lock.read(record.parent)), encoding="utf-8")
    (ROOT / "docs" / "signature-index.md").write_text(index(shipped()), encoding="utf-8")
    pages.write(ROOT / "docs" / "signatures", written.pages(shipped()), written.MARK)


if __name__ == "__main__":
    import os

    os.chdir(ROOT)
    main()
