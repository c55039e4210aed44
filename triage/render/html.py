"""One self-contained page: no script, nothing loaded from elsewhere, light or dark as the reader's system is, and
readable as text.

Log text is escaped everywhere, and the page's own policy forbids scripts and loading, should anything ever get through.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from triage.base.lazy_re import lazy_re
from triage.model.diagnosis import Diagnosis, Finding
from triage.model.evidence import Evidence
from triage.render import rankmap, swimlanes, words
from triage.render.safe import clip, safe, safe_line

__all__ = ["block", "line", "name", "render"]

name = "html"

LISTED = 20
TABLE = 200
LINES, CHARACTERS = 60, 2000  # of quoted log text
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --page: #ffffff; --soft: #f6f8fa; --edge: #d0d7de; --dim: #59636e;
  --bad: #cf222e; --odd: #9a6700; --good: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --page: #0d1117; --soft: #161b22; --edge: #3d444d; --dim: #9198a1;
  --bad: #ff7b72; --odd: #e3b341; --good: #3fb950 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; color: var(--ink); background: var(--page);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; line-height: 1.3; margin: 0 0 .5rem } h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem }
h1 .kind { display: block; font-size: .85rem; letter-spacing: .05em } .bad { color: var(--bad) } .odd { color: var(--odd) }
.good { color: var(--good) } .dim, footer { color: var(--dim); font-size: .9rem }
pre { margin: .5rem 0; padding: .7rem; background: var(--soft); border: 1px solid var(--edge); border-radius: 6px; overflow-x: auto;
  font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap }
code { font: .9em ui-monospace, monospace } .scroll { overflow-x: auto } svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: .9rem } th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--edge) }
footer { margin-top: 2rem; border-top: 1px solid var(--edge); padding-top: .6rem }
a { color: inherit } a:focus-visible, summary:focus-visible { outline: 2px solid currentColor }
"""
_CLASS: dict[words.Kind, str] = {"ROOT CAUSE": "bad", "UNKNOWN FAILURE": "odd", "SYMPTOMS ONLY": "odd", "CLEAN": "good"}
_LINK = lazy_re(r"https://[A-Za-z0-9][A-Za-z0-9._~/?#=&%+:,-]*")


def render(diagnosis: Diagnosis, *, width: int | None = None, color: bool = False) -> str:
    """The whole page."""
    root = diagnosis.root_cause
    groups = words.groups(diagnosis)
    title = f"{words.kind(diagnosis).capitalize()}: {words.headline(diagnosis)}"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"><meta name="referrer" content="no-referrer">',
        f"<title>{line(clip(title, 120))}</title><style>{STYLE}</style></head>",
        "<body><main>",
        *_head(diagnosis),
        *(_action(root) if root is not None else []),
        *_section("Why", _items(line(sentence) for sentence in root.why) if root is not None else []),
        *_section("Ranks", _ranks(diagnosis)),
        *_section("Around the first failure", _lanes(diagnosis)),
        *_section("It caused", _findings(groups.caused, diagnosis)),
        *_section("Confirmed by", _findings(groups.confirmed, diagnosis)),
        *_section(
            "Before that" if diagnosis.verdict == "clean" else "Also considered",
            _findings(groups.considered, diagnosis, reasons=True),
        ),
        *_section("Unknown", _findings(words.others(diagnosis), diagnosis, reasons=True)),
        *_section("Set aside", _findings(groups.noise, diagnosis)),
        *_section("Warnings", _items(_warning(*told) for told in words.warnings(diagnosis))),
        "</main>",
        _footer(diagnosis),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def line(text: str) -> str:
    """Text of one line, as text."""
    return escape(safe_line(text))


def block(text: str) -> str:
    """Lines of a log; many lines and long lines give up their middle."""
    rows = safe(text).strip("\n").split("\n")
    if len(rows) > LINES:
        rows = [*rows[: LINES // 3], f"… {words.plural(len(rows) - LINES, 'more line')} …", *rows[LINES // 3 - LINES :]]
    return f"<pre>{escape(chr(10).join(clip(row, CHARACTERS) for row in rows))}</pre>"


def _section(title: str, content: list[str]) -> list[str]:
    return [f"<section><h2>{title}</h2>", *content, "</section>"] if content else []


def _items(items: Iterable[str]) -> list[str]:
    told = list(items)
    more = [f"<li>and {len(told) - LISTED} more</li>"] if len(told) > LISTED else []
    return ["<ul>", *(f"<li>{item}</li>" for item in told[:LISTED]), *more, "</ul>"] if told else []


def _head(diagnosis: Diagnosis) -> list[str]:
    root, kind = diagnosis.root_cause, words.kind(diagnosis)
    parts = [f'<h1><span class="kind {_CLASS[kind]}">{kind}</span> {line(clip(words.headline(diagnosis), 300))}</h1>']
    if root is None or kind == "CLEAN":
        return parts
    named = f"<code>{line(root.signature or root.cluster or '')}</code>, " if root.signature or root.cluster else ""
    time = words.clock(root.first_time, diagnosis)
    said = [
        line(words.seen(diagnosis)),
        f"at {time}" if time else "",
        f"confidence {words.confidence(root.confidence)}",
    ]
    parts.append(f"<p>{named}{', '.join(part for part in said if part)}</p>")
    for fact in root.evidence[:5]:
        parts += [f'<p class="dim">{_place(fact, diagnosis)}</p>', block(fact.text)]
    return parts


def _place(fact: Evidence, diagnosis: Diagnosis) -> str:
    rank = f", rank {fact.origin.rank}" if fact.origin.rank is not None else ""
    host = f" on {line(fact.origin.host)}" if fact.origin.host else ""
    return f"<code>{line(words.place(fact, diagnosis))}</code>{rank}{host}"


def _action(root: Finding) -> list[str]:
    advice = root.remediation
    if not (advice.summary or advice.steps):
        return []
    steps = ["<ol>", *(f"<li>{line(step)}</li>" for step in advice.steps), "</ol>"] if advice.steps else []
    links = _items(_link(address) for address in advice.references)
    return _section("What to do", [*([f"<p>{line(advice.summary)}</p>"] if advice.summary else []), *steps, *links])


def _link(address: str) -> str:
    """A link when the address is plainly one, else its text."""
    if not _LINK.fullmatch(address):
        return f"<code>{line(address)}</code>"
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{line(address)}</a>'


def _ranks(diagnosis: Diagnosis) -> list[str]:
    states = diagnosis.ranks
    if len(states) < 2:
        return []
    blamed = diagnosis.root_cause.ranks if diagnosis.root_cause is not None else ()
    grid = "\n".join(f"{row.first}-{row.last}  {row.marks}" for row in words.rank_grid(states, 64))
    odd = [state for state in states if state.state != "ok" or state.rank in blamed]
    rows = [
        f"<tr><td>{state.rank}</td><td>{line(state.host or '')}</td><td>{state.state}</td>"
        f"<td>{'' if state.last_step is None else state.last_step}</td><td>{words.clock(state.last_time, diagnosis)}</td></tr>"
        for state in odd[:TABLE]
    ]
    head = "<tr><th>rank</th><th>host</th><th>state</th><th>last step</th><th>last time</th></tr>"
    more = f"<p>and {len(odd) - TABLE} more</p>" if len(odd) > TABLE else ""
    table = [
        f'<details><summary>Ranks that are not ok</summary><div class="scroll"><table>{head}{"".join(rows)}</table></div>{more}</details>'
    ]
    return [
        f'<div class="scroll">{rankmap.draw(states, blamed)}</div>',
        f'<p class="dim">{escape(words.legend(states))}; a frame marks where it began</p>',
        f"<details><summary>The same as text</summary><pre>{escape(grid)}</pre></details>",
        *(table if odd else []),
    ]


def _lanes(diagnosis: Diagnosis) -> list[str]:
    drawn = swimlanes.draw(diagnosis) if diagnosis.root_cause is not None else ""
    if not drawn:
        return []
    told = [
        f"{time or 'no time'} {ranks}: {line(clip(what, 160))}".replace(" : ", ": ")
        for time, ranks, what in words.timeline(diagnosis)
    ]
    text = ["<details><summary>The same as text</summary>", *_items(told), "</details>"] if told else []
    return [f'<div class="scroll">{drawn}</div>', *text]


def _findings(findings: Iterable[Finding], diagnosis: Diagnosis, *, reasons: bool = False) -> list[str]:
    return _items(_finding(finding, diagnosis, reasons) for finding in findings)


def _finding(finding: Finding, diagnosis: Diagnosis, reasons: bool) -> str:
    first = next(iter(finding.evidence), None)
    said = f"<code>{line(words.summary(finding))}</code>: {line(clip(finding.title, 200))}"
    why = f" ({line('; '.join(finding.why))})" if reasons and finding.why else ""
    shown = (
        f"<details><summary>{_place(first, diagnosis)}</summary>{block(first.text)}</details>"
        if first is not None
        else ""
    )
    return said + why + shown


def _warning(sources: list[str], message: str, code: str) -> str:
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    of = f"{', '.join(f'<code>{line(source)}</code>' for source in sources[:3])}{more}: " if sources else ""
    return f"{of}{line(clip(message, 600))} ({line(code)})"


def _footer(diagnosis: Diagnosis) -> str:
    stats = diagnosis.stats
    parts = [
        words.job(diagnosis.job),
        diagnosis.job.path,
        words.plural(stats.files, "file"),
        words.size(stats.bytes),
        f"{stats.seconds:.1f} s",
        f"catalog {diagnosis.catalog_version}",
        f"triage {diagnosis.tool_version}",
    ]
    return f"<footer>{' · '.join(line(part) for part in parts if part)}</footer>"
