"""The catalog as Markdown: one page for each signature and an index by domain.

Text is escaped so that nothing in it becomes markup or HTML; log lines and patterns stand in fences that they cannot
end. Unlike a comment on an issue, a page notifies nobody, so that `@` and `#` stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.catalog.graph import GraphEdge, group_edges_by_effect
from triage.catalog.match import describe_clause
from triage.catalog.model import Clause, Leaf, Sample, Signature
from triage.catalog.remediation import describe_advice
from triage.render.markdown import code
from triage.render.sanitize import sanitize, sanitize_line
from triage.render.signature import format_reach

MARK = "<!-- written by `triage catalog docs`; do not edit -->"
INDEX = "README.md"
DETAILED = 12  # edges that are shown with their titles
_MARKUP = lazy_re(r"[\\`*_\[\]|~]")
_START = lazy_re(r"^(?:([#+\-=])|(\d{1,9})([.)]))")
_ADDRESS = lazy_re(r"https?://[A-Za-z0-9][A-Za-z0-9._~/?#=&%+:,@-]*")


def render_pages(signatures: Sequence[Signature]) -> dict[str, str]:
    """Return file name to content: `<id>.md` for each signature, and the index."""
    ordered = sorted(signatures, key=lambda signature: signature.id)
    known = {signature.id: signature for signature in ordered}
    causes = group_edges_by_effect(ordered)
    single = {f"{one.id}.md": render_page(one, known, causes.get(one.id, ())) for one in ordered if not one.table}
    return {
        INDEX: render_index(ordered),
        **single,
        **{f"{name}.md": render_code_table(name, rows, known) for name, rows in group_code_tables(ordered).items()},
    }


def group_code_tables(signatures: Iterable[Signature]) -> dict[str, list[Signature]]:
    """Return the signatures of each table of codes, ordered by code."""
    rows_by_table: dict[str, list[Signature]] = {}
    for signature in signatures:
        if signature.table:
            rows_by_table.setdefault(signature.table, []).append(signature)
    return {name: sorted(rows, key=_by_code) for name, rows in rows_by_table.items()}


def _by_code(row: Signature) -> tuple[int, str]:
    code = row.id.removeprefix(f"{row.table}-")
    return (int(code) if code.isdecimal() else 0), code


def render_index(signatures: Sequence[Signature]) -> str:
    """Return the index: a table for each domain."""
    domains = sorted({signature.domain for signature in signatures})
    parts = [
        MARK,
        "# Signatures",
        f"{len(signatures)} failure modes: " + ", ".join(f"[{domain}](#{domain})" for domain in domains) + ".",
    ]
    for domain in domains:
        rows = [
            f"| [{code(signature.id)}]({signature.id}.md) | {signature.role} | {signature.severity} "
            f"| {escape_inline(signature.title)} |"
            for signature in signatures
            if signature.domain == domain and not signature.table
        ]
        rows += [
            f"| [{code(name)}]({name}.md) | table | | {len(of)} codes |"
            for name, of in group_code_tables(signatures).items()
            if name.partition(".")[0] == domain
        ]
        parts += [f"## {domain}", "\n".join(["| signature | role | severity | title |", "|---|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def render_page(signature: Signature, known: Mapping[str, Signature], causes: Iterable[GraphEdge]) -> str:
    """Return everything about one signature, without empty sections."""
    conditions = _block(_lines(_conditions(signature.match))) if signature.match else ""
    consequences = [(edge.signature, format_reach(edge.scope, edge.window)) for edge in signature.causal_edges]
    reasons = [(edge.cause, format_reach(edge.scope, edge.window)) for edge in causes]
    sections: Sequence[tuple[str, Iterable[str]]] = (
        ("What it means", [escape_inline(signature.meaning)]),
        ("Impact", [escape_inline(signature.impact)]),
        ("What to do", _advice(signature)),
        ("What it looks for", [conditions, _applies(signature)]),
        ("Explains", [_lines(_edges(consequences, known))]),
        ("Explained by", [_lines(_edges(reasons, known))]),
        ("Lines that match", map(_sample, signature.samples_match)),
        ("Lines that do not match", map(_sample, signature.samples_no_match)),
        ("When it misleads", [_lines(f"- {escape_inline(text)}" for text in signature.falsepositives)]),
        ("References", [_lines(f"- {_link(address)}" for address in signature.references)]),
    )
    parts = [MARK, f"# {escape_inline(signature.title)}", _facts(signature)]
    for heading, paragraphs in sections:
        texts = [paragraph for paragraph in paragraphs if paragraph]
        parts += [f"## {heading}", *texts] if texts else []
    return "\n\n".join([*parts, f"[All signatures]({INDEX})"]) + "\n"


def render_code_table(name: str, rows: Sequence[Signature], known: Mapping[str, Signature]) -> str:
    """Return one page for all codes of a table: meaning, advice, and the signatures with more details."""
    first = rows[0]
    lines = ["| id | what it says | role | severity | action | more |", "|---|---|---|---|---|---|"]
    for row in rows:
        more = ", ".join(_page(identifier, known) for identifier in row.yields_to)
        lines.append(
            f"| {code(row.id)} | {escape_inline(row.meaning or row.title)} | {row.role} | {row.severity} "
            f"| {row.action} | {more} |"
        )
    advice = {row.action: row for row in rows}
    parts = [MARK, f"# {escape_inline(name)}: {len(rows)} codes", _lines(lines), "## What to do"]
    for action, row in sorted(advice.items()):
        summary, steps = _advice(row)
        parts += [f"{code(action)}, as for {code(row.id)}: {summary}", steps]
    parts += [
        "## What it looks for",
        _block(_lines(_conditions(first.match))),
        "## A line that matches",
        _sample(first.samples_match[0]),
    ]
    parts += ["## Lines that do not match", *map(_sample, first.samples_no_match)] if first.samples_no_match else []
    explaining = next((row for row in rows if row.causal_edges), None)
    if explaining is not None:
        edges = _edges(
            [(edge.signature, format_reach(edge.scope, edge.window)) for edge in explaining.causal_edges], known
        )
        parts += ["## Explains, where the role is cause or either", _lines(edges)]
    parts += (
        ["## References", _lines(f"- {_link(address)}" for address in first.references)] if first.references else []
    )
    return "\n\n".join([*parts, f"[All signatures]({INDEX})"]) + "\n"


def escape_inline(text: str) -> str:
    """Return text of one line that is no markup and no HTML."""
    line = sanitize_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
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
        ("origin", escape_inline(signature.origin)),
    )
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows if value)])


def _lines(items: Iterable[str]) -> str:
    return "\n".join(items)


def _advice(signature: Signature) -> tuple[str, str]:
    """Return the summary and the numbered steps."""
    summary, *steps = describe_advice(signature)
    return escape_inline(summary), _lines(f"{number}. {escape_inline(step)}" for number, step in enumerate(steps, 1))


def _edges(ends: Sequence[tuple[str, str]], known: Mapping[str, Signature]) -> Iterator[str]:
    """Yield a line for each edge with scope and title; of many edges a line for each domain."""
    ends = list(dict.fromkeys((_table(identifier, known), scope) for identifier, scope in ends))
    if len(ends) <= DETAILED:
        for identifier, scope in ends:
            title = (
                f": {escape_inline(known[identifier].title)}"
                if identifier in known
                else ": rows of a table"
                if _is_table(identifier, known)
                else ""
            )
            yield f"- {_page(identifier, known)} ({scope}){title}"
        return
    for domain in sorted({identifier.partition(".")[0] for identifier, _ in ends}):
        named = sorted({identifier for identifier, _ in ends if identifier.partition(".")[0] == domain})
        yield f"- {domain}: " + ", ".join(_page(identifier, known) for identifier in named)


def _page(identifier: str, known: Mapping[str, Signature]) -> str:
    name = _table(identifier, known)
    return f"[{code(identifier)}]({name}.md)" if name in known or _is_table(name, known) else code(identifier)


def _table(identifier: str, known: Mapping[str, Signature]) -> str:
    """Return the table of the signature, else the signature itself."""
    return known[identifier].table or identifier if identifier in known else identifier


def _is_table(name: str, known: Mapping[str, Signature]) -> bool:
    return any(signature.table == name for signature in known.values())


def _applies(signature: Signature) -> str:
    return (
        "Applies to "
        + ", ".join(f"{escape_inline(name)} {code(bounds)}" for name, bounds in signature.applies_to.items())
        if signature.applies_to
        else ""
    )


def _conditions(node: Clause | Leaf | None, depth: int = 0, start: str = "") -> Iterator[str]:
    """Yield one indented line for each clause of `match`."""
    indent = "  " * depth + start
    if isinstance(node, Leaf):
        yield indent + describe_clause(node)
    elif node is not None:
        yield indent + ("any of these:" if node.op == "any" else "all of these, somewhere in the job:")
        for part in node.parts:
            yield from _conditions(part, depth + 1)
        for leaf in node.none:
            yield from _conditions(leaf, depth + 1, "but not: ")


def _block(text: str) -> str:
    """Return a fenced block that the text cannot end."""
    body = sanitize(text).strip("\n")
    mark = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{mark}text\n{body}\n{mark}"


def _sample(sample: Sample) -> str:
    origin = (
        f"{escape_inline(sample.kind)} of {escape_inline(sample.component)}: "
        if sample.kind and sample.component
        else ""
    )
    values = ", ".join(
        f"{escape_inline(name)} = {code(value)}" for name, value in [*sample.fields.items(), *sample.captures.items()]
    )
    parts = [part for part in (escape_inline(sample.why), origin + values if values else "") if part]
    return "\n\n".join([_block(sample.text), *parts])


def _link(address: str) -> str:
    return f"<{address}>" if _ADDRESS.fullmatch(address) else code(address)
