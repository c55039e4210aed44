"""What the name of a file says about who wrote it: a job, or a person."""

from __future__ import annotations

from typing import Literal

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re

NameKind = Literal["output", "written", "document", "fixture", "neutral"]
"""`written`: programs, settings and documents by their extension; `document`: texts that are documents by their name or
folder; `fixture`: what tests, packages and archives of earlier runs bring along; `neutral`: anything, so that the text
decides."""

# Programs, settings and documents quote failures that did not happen: `raise RuntimeError("CUDA out of memory")`.
_WRITTEN = masked_re(
    r"(?i)\.(?:py|pyi|pyx|pxd|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|hip|go|rs|java|scala|kt|js|mjs|ts|jsx|tsx|vue|css|html?|"
    r"jl|rb|lua|pl|pm|php|swift|sql|proto|cmake|tf|sh|bash|zsh|fish|ps1|bat|sbatch|slurm|pbs|ya?ml|toml|ini|cfg|conf|"
    r"properties|j2|tmpl|md|mdx|markdown|rst|adoc|tex|bib|diff|patch|svg)$"
)
_PROSE = lazy_re(r"(?i)\.(?:html?|md|mdx|markdown|rst|adoc)$")
_WRITTEN_STEM = lazy_re(r"(?:^|/)(?:Makefile|Dockerfile|Jenkinsfile|Justfile|CMakeLists\.txt|requirements[\w-]*\.txt)$")
_OUTPUT = lazy_re(
    r"(?i)\.(?:log|out|err|stdout|stderr|stdlog|console|trace|[oe]\d+)(?:[.-]?\d+)?$|(?:^|/)(?:stdout|stderr|messages|"
    r"syslog|dmesg)(?:\.txt)?$"
)
_TEXT = lazy_re(r"(?i)\.(?:txt|text|csv|tsv|json|jsonl|ndjson|org)$|(?:^|/)[^./]+$")
_DOCUMENT = lazy_re(
    r"(?i)(?:^|[/_. -])(?:read-?me|changes?|changelog|history|news|notes?|to-?do|faq|licen[cs]e|copying|notice|authors|"
    r"contribut(?:ors|ing)|how-?to|guide|manual|tutorial|run-?book|play-?book|trouble-?shooting|"
    r"known[_ -](?:issues|problems|errors|failures)|release[_ -]?notes|post-?mortem|incident[_ -]report|help|"
    r"glossary|cheat-?sheet|wiki|errata|upgrading)(?=[_. -]|$)[^/]*$"
    r"|(?:^|/)(?:docs?|documentation|examples?|man)/"
)
_FIXTURE = lazy_re(
    r"(?i)(?:^|/)(?:fixtures?|test-?_?data|golden|site-packages|dist-packages|node_modules|\.git|third[_-]party|"
    r"__snapshots__|(?:archived?|old|previous|prev|backups?)(?:[_-](?:logs?|runs?|jobs?))?)/"
)


def classify_name(name: str) -> NameKind:
    """Return what the name below the directory that the user gave says."""
    name = name.removesuffix(".gz")
    if _FIXTURE.search(name):
        return "fixture"
    if _WRITTEN.search(name) or _WRITTEN_STEM.search(name):
        return "written"
    if _OUTPUT.search(name) or not _TEXT.search(name):
        return "output"
    return "document" if _DOCUMENT.search(name) else "neutral"


def is_prose(name: str) -> bool:
    """Whether a file is a document by its name: people write in it about jobs, and quote their lines."""
    return _PROSE.search(name) is not None or classify_name(name) == "document"
