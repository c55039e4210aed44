"""The report as one self-contained HTML page: no script, nothing loaded, light or dark like the reader's system.

Log text is escaped everywhere, and the page's own policy forbids scripts and loading, should anything ever get through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from triage.base.lazy_re import lazy_re
from triage.model import Diagnosis, Evidence, Finding, RankState
from triage.render import inconclusive, job_warnings, phrases, rank_grid, rankmap, swimlanes
from triage.render.sanitize import clip, sanitize_line

__all__ = ["block", "line", "name", "render"]

name = "html"

LISTED = 20
TABLE = 200
TITLE = 300
LINES, CHARACTERS = 60, 2000  # of quoted log text
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --page: #ffffff; --soft: #f6f8fa; --edge: #d0d7de; --dim: #59636e;
  --bad: #cf222e; --odd: #9a6700; --good: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --page: #0d1117; --soft: #161b22; --edge: #3d444d;
  --dim: #9198a1; --bad: #ff7b72; --odd: #e3b341; --good: #3fb950 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; color: var(--ink); background: var(--page);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; line-height: 1.3; margin: 0 0 .5rem } h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem }
h1 .kind { display: block; font-size: .85rem; letter-spacing: .05em } .bad { color: var(--bad) }
.odd { color: var(--odd) } .good { color: var(--good) } .dim, footer { color: var(--dim); font-size: .9rem }
pre { margin: .5rem 0; padding: .7rem; background: var(--soft); border: 1px solid var(--edge); border-radius: 6px;
  overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap }
code { font: .9em ui-monospace, monospace } .scroll { overflow-x: auto } svg { max-width: 100%; height: auto }
svg.triage-lanes { max-width: none }
table { border-collapse: collapse; font-size: .9rem }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--edge) }
footer { margin-top: 2rem; border-top: 1px solid var(--edge); padding-top: .6rem }
a { color: inherit } a:focus-visible, summary:focus-visible { outline: 2px solid currentColor }
"""
_CLASS: dict[phrases.VerdictKind, str] = {
    "ROOT CAUSE": "bad",
    "UNKNOWN FAILURE": "odd",
    "SYMPTOMS ONLY": "odd",
    "INCONCLUSIVE": "odd",
    "CLEAN": "good",
}
_LINK = lazy_re(r"https://[A-Za-z0-9][A-Za-z0-9._~/?#=&%+:,-]*")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False) -> str:
    """Return the whole page."""
    root = diagnosis.root_cause
    groups = phrases.group_findings(diagnosis)
    sentence = phrases.describe_consequences(diagnosis)
    title = f"{phrases.verdict_kind(diagnosis).capitalize()}: {phrases.headline(diagnosis)}"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{line(clip(title, 120))}</title><style>{STYLE}</style></head>",
        "<body><main>",
        *_head(diagnosis),
        *_inconclusive(diagnosis),
        *(_action(root) if root is not None else []),
        *_section("Next time", _numbered(phrases.next_steps(diagnosis))),
        *_section("Why", _items(map(line, phrases.root_reasons(diagnosis)))),
        *_section("Ranks", _ranks(diagnosis)),
        *_section("Around the first failure", _lanes(diagnosis)),
        *_section("It caused", [f"<p>{sentence}.</p>"] * bool(sentence) + _findings(groups.caused, diagnosis)),
        *_section("Confirmed by", _findings(groups.confirmed, diagnosis)),
        *_section(phrases.considered_label(diagnosis), _findings(groups.considered, diagnosis, with_reasons=True)),
        *_section("Their consequences", _findings(groups.aftermath, diagnosis)),
        *_section("Unknown", _findings(phrases.other_unknowns(diagnosis), diagnosis, with_reasons=True)),
        *_section("Ignored", _findings(groups.noise, diagnosis)),
        *_section("Warnings", _items(_warning(*group) for group in job_warnings.merge_warnings(diagnosis))),
        "</main>",
        f"<footer>{' · '.join(map(line, phrases.footer_parts(diagnosis)))}</footer>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def line(text: str) -> str:
    """Return text of one line, escaped."""
    return escape(sanitize_line(text))


def block(text: str) -> str:
    """Return log lines as a block; many lines and long lines lose their middle."""
    rows = (clip(row, CHARACTERS) for row in phrases.shorten_lines(text, LINES))
    return f"<pre>{escape(chr(10).join(rows))}</pre>"


def _section(title: str, content: list[str]) -> list[str]:
    return [f"<section><h2>{title}</h2>", *content, "</section>"] if content else []


def _items(items: Iterable[str]) -> list[str]:
    rows = list(items)
    more = [f"<li>and {len(rows) - LISTED} more</li>"] if len(rows) > LISTED else []
    return ["<ul>", *(f"<li>{row}</li>" for row in rows[:LISTED]), *more, "</ul>"] if rows else []


def _numbered(steps: Sequence[str]) -> list[str]:
    return ["<ol>", *(f"<li>{line(step)}</li>" for step in steps), "</ol>"] if steps else []


def _head(diagnosis: Diagnosis) -> list[str]:
    root, kind = diagnosis.root_cause, phrases.verdict_kind(diagnosis)
    heading = line(clip(phrases.headline(diagnosis), TITLE))
    parts = [f'<h1><span class="kind {_CLASS[kind]}">{kind}</span> {heading}</h1>']
    if root is None or kind == "CLEAN":
        return parts
    name = f"<code>{line(root.signature or root.cluster or '')}</code>, " if root.signature or root.cluster else ""
    time = phrases.describe_root_time(diagnosis)
    facts = [
        line(phrases.describe_line_origin(diagnosis)),
        f"at {time}" if time else "",
        f"confidence {phrases.format_confidence(root.confidence)}",
    ]
    return [*parts, f"<p>{name}{', '.join(fact for fact in facts if fact)}</p>", *_evidence(root, diagnosis)]


def _inconclusive(diagnosis: Diagnosis) -> list[str]:
    """Return what is known of the end of an inconclusive job, and what to add."""
    sections = inconclusive.sections(diagnosis)
    parts = [part for title, rows in sections for part in _section(title, _items(line(clip(row, 600)) for row in rows))]
    return [*parts, *_section("What to add", _numbered(inconclusive.next_steps(diagnosis)))]


def _evidence(root: Finding, diagnosis: Diagnosis) -> list[str]:
    """Return each log line once, below all its places."""
    places: dict[str, list[str]] = {}
    for item in phrases.distinct_evidence(root)[:5]:
        text = "" if phrases.repeats_title(item, root) and len(item.text) < TITLE else item.text.strip()
        quoted = next((one for one in places if one and (text in one or one in text)), text)
        places.setdefault(quoted, []).append(_place(item, diagnosis))
    return [
        part
        for text, rows in places.items()
        for part in (f'<p class="dim">{"; ".join(rows)}</p>', block(text) if text else "")
        if part
    ]


def _place(fact: Evidence, diagnosis: Diagnosis) -> str:
    place = f"<code>{line(phrases.format_place(fact, diagnosis))}</code>"
    if fact.kind == "inference":
        return f"inferred from {place}"
    rank = f", rank {fact.origin.rank}" if fact.origin.rank is not None else ""
    host = f" on {line(fact.origin.host)}" if fact.origin.host else ""
    return f"{place}{rank}{host}"


def _action(root: Finding) -> list[str]:
    advice = root.remediation
    if not (advice.summary or advice.steps):
        return []
    links = _items(_link(address) for address in advice.references)
    summary = [f"<p>{line(advice.summary)}</p>"] if advice.summary else []
    return _section("What to do", [*summary, *_numbered(advice.steps), *links])


def _link(address: str) -> str:
    """A link when the address is plainly one, else its text."""
    if not _LINK.fullmatch(address):
        return f"<code>{line(address)}</code>"
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{line(address)}</a>'


def _ranks(diagnosis: Diagnosis) -> list[str]:
    states = diagnosis.ranks
    if len(states) < 2:
        return []
    blamed = phrases.began_ranks(diagnosis)
    frame = "; a red frame marks where it began" if blamed else ""
    rows, others = rank_grid.select_rows(rank_grid.grid_rows(states, 64), blamed)
    grid = "\n".join([*(f"{row.first}-{row.last}  {row.marks}" for row in rows), others])
    return [
        f'<div class="scroll">{rankmap.draw(states, blamed)}</div>',
        f'<p class="dim">{escape(rank_grid.state_legend(states))}{frame}</p>',
        f"<details><summary>The same as text</summary><pre>{escape(grid)}</pre></details>",
        *_rank_table([state for state in states if state.state != "ok" or state.rank in blamed], diagnosis),
    ]


def _rank_table(states: Sequence[RankState], diagnosis: Diagnosis) -> list[str]:
    """Return the states as a table behind a fold; nothing for no states."""
    if not states:
        return []
    rows = ["<tr><th>rank</th><th>host</th><th>state</th><th>last step</th><th>last time</th></tr>"]
    for state in states[:TABLE]:
        step = "" if state.last_step is None else state.last_step
        cells = (state.rank, line(state.host or ""), state.state, step, phrases.format_time(state.last_time, diagnosis))
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    more = f"<p>and {len(states) - TABLE} more</p>" if len(states) > TABLE else ""
    table = f'<div class="scroll"><table>{"".join(rows)}</table></div>{more}'
    return [f"<details><summary>Ranks that are not ok</summary>{table}</details>"]


def _lanes(diagnosis: Diagnosis) -> list[str]:
    drawing = swimlanes.draw(diagnosis) if diagnosis.root_cause is not None else ""
    if not drawing:
        return []
    moments = [
        f"{time or 'no time'} {ranks}: {line(clip(what, 160))}".replace(" : ", ": ")
        for time, ranks, what in phrases.merge_moments(diagnosis)
    ]
    text = ["<details><summary>The same as text</summary>", *_items(moments), "</details>"] if moments else []
    return [f'<div class="scroll">{drawing}</div>', *text]


def _findings(findings: Iterable[Finding], diagnosis: Diagnosis, *, with_reasons: bool = False) -> list[str]:
    rows = phrases.with_reasons(findings)
    return _items(_finding(finding, reasons if with_reasons else "", diagnosis) for finding, reasons in rows)


def _finding(finding: Finding, reasons: str, diagnosis: Diagnosis) -> str:
    details = "".join(
        f"<details><summary>{_place(item, diagnosis)}</summary>{block(item.text)}</details>"
        for item in finding.evidence[:1]
    )
    text = clip(finding.title, 200) + reasons
    return f"<code>{line(phrases.format_finding(finding))}</code>: {line(text)}{details}"


def _warning(sources: list[str], message: str, code: str) -> str:
    names = [f"<code>{line(source)}</code>" for source in sources]
    origin = f"{phrases.shorten_list(names)}: " if sources else ""
    return f"{origin}{line(clip(message, 600))} ({line(code)})"
