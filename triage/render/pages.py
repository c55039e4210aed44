"""One Markdown page a signature and an index by domain, for a directory of a repository or a documentation site.

Text is escaped so that nothing in it becomes markup or HTML; lines of logs and patterns stand in fences that they
cannot end.
Unlike a comment on an issue, a page notifies nobody, so that `@` and `#` stay as they are and commands can be copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.catalog.graph import Arrow, explained_by
from triage.catalog.match import describe
from triage.catalog.model import Clause, Leaf, Sample, Signature
from triage.render.markdown import code
from triage.render.safe import safe, safe_line
from triage.render.signature import reach

MARK = "<!-- written by `triage catalog docs`; do not edit -->"
INDEX = "README.md"
DETAILED = 12  # edges that are shown with their titles
_MARKUP = lazy_re(r"[\\`*_\[\]|~]")
_START = lazy_re(r"^(?:([#+\-=])|(\d{1,9})([.)]))")
_ADDRESS = lazy_re(r"https?://[A-Za-z0-9][A-Za-z0-9._~/?#=&%+:,@-]*")


def pages(signatures: Sequence[Signature]) -> dict[str, str]:
    """File name to content: `<id>.md` for each signature, and the index."""
    ordered = sorted(signatures, key=lambda signature: signature.id)
    known = {signature.id: signature for signature in ordered}
    causes = explained_by(ordered)
    single = {f"{one.id}.md": page(one, known, causes.get(one.id, ())) for one in ordered if not one.table}
    return {
        INDEX: index(ordered),
        **single,
        **{f"{name}.md": table(name, rows, known) for name, rows in tables(ordered).items()},
    }


def tables(signatures: Iterable[Signature]) -> dict[str, list[Signature]]:
    """The rows of each table of codes, those with a number by their number."""
    found: dict[str, list[Signature]] = {}
    for signature in signatures:
        if signature.table:
            found.setdefault(signature.table, []).append(signature)
    return {name: sorted(rows, key=_by_code) for name, rows in found.items()}


def _by_code(row: Signature) -> tuple[int, str]:
    code = row.id.removeprefix(f"{row.table}-")
    return (int(code) if code.isdecimal() else 0), code


def index(signatures: Sequence[Signature]) -> str:
    """A table a domain."""
    domains = sorted({signature.domain for signature in signatures})
    parts = [
        MARK,
        "# Signatures",
        f"{len(signatures)} failure modes: " + ", ".join(f"[{domain}](#{domain})" for domain in domains) + ".",
    ]
    for domain in domains:
        rows = [
            f"| [{code(signature.id)}]({signature.id}.md) | {signature.role} | {signature.severity} | {plain(signature.title)} |"
            for signature in signatures
            if signature.domain == domain and not signature.table
        ]
        rows += [
            f"| [{code(name)}]({name}.md) | table | | {len(of)} codes |"
            for name, of in tables(signatures).items()
            if name.partition(".")[0] == domain
        ]
        parts += [f"## {domain}", "\n".join(["| signature | role | severity | title |", "|---|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def page(signature: Signature, known: Mapping[str, Signature], causes: Iterable[Arrow]) -> str:
    """Everything about one signature; sections that would be empty are left out."""
    sections: Sequence[tuple[str, Iterable[str]]] = (
        ("What it means", [plain(signature.meaning)]),
        ("Impact", [plain(signature.impact)]),
        ("What to do", [plain(signature.summary), _lines(_numbered(signature.steps))]),
        (
            "What it looks for",
            [_block(_lines(_conditions(signature.match))) if signature.match else "", _applies(signature)],
        ),
        (
            "Explains",
            [_lines(_edges([(edge.signature, reach(edge.scope, edge.window)) for edge in signature.leads_to], known))],
        ),
        (
            "Explained by",
            [_lines(_edges([(arrow.cause, reach(arrow.scope, arrow.window)) for arrow in causes], known))],
        ),
        ("Lines that match", map(_sample, signature.samples_match)),
        ("Lines that do not match", map(_sample, signature.samples_no_match)),
        ("When it misleads", [_lines(f"- {plain(text)}" for text in signature.falsepositives)]),
        ("References", [_lines(f"- {_link(address)}" for address in signature.references)]),
    )
    parts = [MARK, f"# {plain(signature.title)}", _facts(signature)]
    for heading, paragraphs in sections:
        kept = [paragraph for paragraph in paragraphs if paragraph]
        parts += [f"## {heading}", *kept] if kept else []
    return "\n\n".join([*parts, f"[All signatures]({INDEX})"]) + "\n"


def table(name: str, rows: Sequence[Signature], known: Mapping[str, Signature]) -> str:
    """One page for all codes of a table: what each means, what to do, and which signature says more."""
    first = rows[0]
    lines = ["| id | what it says | role | severity | action | more |", "|---|---|---|---|---|---|"]
    for row in rows:
        more = ", ".join(_page(identifier, known) for identifier in row.yields_to)
        lines.append(
            f"| {code(row.id)} | {plain(row.meaning or row.title)} | {row.role} | {row.severity} | {row.action} | {more} |"
        )
    advice = {row.action: row for row in rows}
    parts = [MARK, f"# {plain(name)}: {len(rows)} codes", _lines(lines), "## What to do"]
    for action, row in sorted(advice.items()):
        parts += [f"{code(action)}, as for {code(row.id)}: {plain(row.summary)}", _lines(_numbered(row.steps))]
    parts += [
        "## What it looks for",
        _block(_lines(_conditions(first.match))),
        "## A line that matches",
        _sample(first.samples_match[0]),
    ]
    parts += ["## Lines that do not match", *map(_sample, first.samples_no_match)] if first.samples_no_match else []
    explaining = next((row for row in rows if row.leads_to), None)
    if explaining is not None:
        edges = _edges([(edge.signature, reach(edge.scope, edge.window)) for edge in explaining.leads_to], known)
        parts += ["## Explains, where the role is cause or either", _lines(edges)]
    parts += (
        ["## References", _lines(f"- {_link(address)}" for address in first.references)] if first.references else []
    )
    return "\n\n".join([*parts, f"[All signatures]({INDEX})"]) + "\n"


def plain(text: str) -> str:
    """Text of one line that is no markup and no HTML."""
    line = safe_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKUP.sub(r"\\\g<0>", line)
    return _START.sub(lambda start: f"\\{start[1]}" if start[1] else f"{start[2]}\\{start[3]}", line)


def _facts(signature: Signature) -> str:
    rows = (
        ("id", code(signature.id)),
        ("role", signature.role),
        ("severity", signature.severity),
        ("status", signature.status),
        ("replaced by", code(signature.replaced_by) if signature.replaced_by else ""),
        ("revision", str(signature.revision)),
        ("action", signature.action),
        ("origin", plain(signature.origin)),
    )
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows if value)])


def _lines(items: Iterable[str]) -> str:
    return "\n".join(items)


def _numbered(steps: Iterable[str]) -> Iterator[str]:
    return (f"{number}. {plain(step)}" for number, step in enumerate(steps, 1))


def _edges(ends: Sequence[tuple[str, str]], known: Mapping[str, Signature]) -> Iterator[str]:
    """A line each with scope and title; many of them as one line a domain, for nobody reads two hundred."""
    ends = list(dict.fromkeys((_table(identifier, known), scope) for identifier, scope in ends))
    if len(ends) <= DETAILED:
        for identifier, scope in ends:
            title = (
                f": {plain(known[identifier].title)}"
                if identifier in known
                else ": rows of a table"
                if _named(identifier, known)
                else ""
            )
            yield f"- {_page(identifier, known)} ({scope}){title}"
        return
    for domain in sorted({identifier.partition(".")[0] for identifier, _ in ends}):
        named = sorted({identifier for identifier, _ in ends if identifier.partition(".")[0] == domain})
        yield f"- {domain}: " + ", ".join(_page(identifier, known) for identifier in named)


def _page(identifier: str, known: Mapping[str, Signature]) -> str:
    name = _table(identifier, known)
    return f"[{code(identifier)}]({name}.md)" if name in known or _named(name, known) else code(identifier)


def _table(identifier: str, known: Mapping[str, Signature]) -> str:
    """The table that the signature is a row of, else the signature itself."""
    return known[identifier].table or identifier if identifier in known else identifier


def _named(name: str, known: Mapping[str, Signature]) -> bool:
    return any(signature.table == name for signature in known.values())


def _applies(signature: Signature) -> str:
    return (
        "Applies to " + ", ".join(f"{plain(name)} {code(bounds)}" for name, bounds in signature.applies_to.items())
        if signature.applies_to
        else ""
    )


def _conditions(node: Clause | Leaf | None, depth: int = 0, start: str = "") -> Iterator[str]:
    """One line a clause, as deep as `match` is; patterns as they are."""
    indent = "  " * depth + start
    if isinstance(node, Leaf):
        yield indent + describe(node)
    elif node is not None:
        yield indent + ("any of these:" if node.op == "any" else "all of these, somewhere in the job:")
        for part in node.parts:
            yield from _conditions(part, depth + 1)
        for leaf in node.none:
            yield from _conditions(leaf, depth + 1, "but not: ")


def _block(text: str) -> str:
    """A fenced block that the text cannot end, with nothing cut from it."""
    body = safe(text).strip("\n")
    mark = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{mark}text\n{body}\n{mark}"


def _sample(sample: Sample) -> str:
    given = f"{plain(sample.kind)} of {plain(sample.component)}: " if sample.kind and sample.component else ""
    values = ", ".join(
        f"{plain(name)} = {code(value)}" for name, value in [*sample.fields.items(), *sample.captures.items()]
    )
    said = [part for part in (plain(sample.why), given + values if values else "") if part]
    return "\n\n".join([_block(sample.text), *said])


def _link(address: str) -> str:
    return f"<{address}>" if _ADDRESS.fullmatch(address) else code(address)
