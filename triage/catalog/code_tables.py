"""Tables of codes: files whose rows become signatures, for codes that a vendor lists (Xid, SXid, CANN).

All rows share one pattern, which the scan and the matcher look for once; each row matches one captured code. A row is a
signature like any other, with an id of its own that never changes: `<table>-<code>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from triage.catalog import schema
from triage.catalog.edge_groups import Groups, expand_edges
from triage.catalog.fingerprint import compute_fingerprint
from triage.catalog.model import CausalEdge, Leaf, Sample, Signature
from triage.catalog.regex import list_named_groups
from triage.catalog.schema import Action, Id, Name, Pattern, Strict, Text
from triage.model.diagnosis import Severity

KEY = "table"  # a file with this key is a table
CODE = r"^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$"
_SEVERITY: Mapping[str, Severity] = {
    "cause": "fatal",
    "either": "error",
    "symptom": "error",
    "confirmation": "warning",
    "noise": "info",
}


class Row(Strict):
    """One code: its name, its meaning and what to do. Texts of the table may use {code}, {mnemonic} and {says}."""

    code: Annotated[str, Field(pattern=CODE)] = Field(
        description="The code as logs print it; in lower case, the end of the signature's id"
    )
    mnemonic: str = Field("", description="The vendor's name for the code")
    says: Text = Field(description="What the code means, in a few words that fit a title")
    role: Literal["cause", "symptom", "either", "confirmation", "noise"]
    action: Action
    severity: Literal["info", "warning", "error", "fatal"] | None = Field(
        None, description="Only where it differs from the default of the role"
    )
    values: list[Text] = Field(default_factory=list, description="Other spellings of the code in a log")
    signature: list[Id] = Field(
        default_factory=list, description="More specific signatures for this code; they take precedence over the row"
    )


class Advice(Strict):
    """What to do for one action."""

    summary: Text
    steps: list[Text] = Field(default_factory=list)


class NoMatch(Strict):
    """A line that no row may match."""

    text: Text
    why: str = ""


class TableFile(Strict):
    """A table of codes that one pattern captures."""

    model_config = ConfigDict(extra="forbid", title="triage table of codes")

    table: Id = Field(description="<domain>.<slug>, the file's path; followed by `-<code>`, the id of a row")
    revision: int = Field(ge=1, description="Raised when `match` or the codes of a row change")
    title: Text = Field(description="Title of each row, such as 'Xid {code}: {says}'")
    status: Literal["experimental", "stable"]
    kind: Text | None = Field(None, description="Kind of the evidence")
    match: Pattern = Field(description="RE2 pattern with a group named as `key`")
    key: Name = Field(description="The group that captures the code")
    leads_to: list[schema.Edge] = Field(
        default_factory=list, description="What rows of the roles cause and either explain"
    )
    meaning: str = ""
    impact: str = ""
    remediation: dict[Action, Advice] = Field(description="For each action of a row: summary and steps")
    origin: str = ""
    references: list[Annotated[str, Field(pattern=schema.URL)]] = Field(default_factory=list)
    sample: Text = Field(description="A log line with {code} in it; every row must match its own")
    value_sample: Text | None = Field(
        None, description="A log line for the other spellings in `values`, if it differs from `sample`"
    )
    no_match: list[NoMatch] = Field(default_factory=list, description="Lines that no row may match")
    rows: list[Row] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_consistent(self) -> TableFile:
        if self.key not in {name for name, _ in list_named_groups(self.match)}:
            raise schema.make_error(f"`match` has no group {self.key}", f"write (?P<{self.key}>…) into it")
        if "{code}" not in self.sample or "{code}" not in self.title:
            raise schema.make_error("`sample` and `title` must contain {code}", "write it in place of the code")
        missing = sorted({row.action for row in self.rows} - set(self.remediation))
        if missing:
            raise schema.make_error(f"no remediation for {', '.join(missing)}", "add one for each action")
        codes = [row.code.lower() for row in self.rows]
        repeated = sorted({code for code in codes if codes.count(code) > 1})
        if repeated:
            raise schema.make_error(f"more than one row has the code {', '.join(repeated)}", "keep one of them")
        return self


def json_schema() -> dict[str, Any]:
    """The schema of a table of codes in JSON Schema draft-07, as it stands in signatures/table.schema.json."""
    return schema.to_draft_seven(TableFile)


def expand_table(file: TableFile, path: str, groups: Groups) -> list[Signature]:
    """The signatures of the rows. A row whose id is the id of one of its own `signature` is left out."""
    edges = expand_edges(file.leads_to, groups)
    no_match = tuple(Sample(sample.text, why=sample.why) for sample in file.no_match)
    signatures = []
    for index, row in enumerate(file.rows):
        identifier = f"{file.table}-{row.code.lower()}"
        if identifier not in row.signature:
            other_line = Sample(file.sample.replace("{code}", file.rows[index - 1].code), why="another code")
            negatives = (other_line, *no_match) if len(file.rows) > 1 else no_match
            own_edges = tuple(edge for edge in edges if edge.signature != identifier)
            signatures.append(_expand_row(file, row, identifier, path, own_edges, negatives))
    return signatures


def _expand_row(
    file: TableFile, row: Row, identifier: str, path: str, edges: tuple[CausalEdge, ...], negatives: tuple[Sample, ...]
) -> Signature:
    def fill(text: str) -> str:
        return text.replace("{code}", row.code).replace("{mnemonic}", row.mnemonic).replace("{says}", row.says).strip()

    match = Leaf(kind=file.kind, text=file.match, values={file.key: (row.code, *row.values)})
    advice = file.remediation[row.action]
    line = file.value_sample or file.sample
    lines = [(fill(file.sample), row.code), *((line.replace("{code}", value), value) for value in row.values)]
    return Signature(
        id=identifier,
        revision=file.revision,
        title=fill(file.title),
        status=file.status,
        role=row.role,
        severity=row.severity or _SEVERITY[row.role],
        match=match,
        path=path,
        causal_edges=edges if row.role in ("cause", "either") else (),
        meaning=fill(file.meaning),
        impact=fill(file.impact),
        summary=fill(advice.summary),
        steps=tuple(map(fill, advice.steps)),
        action=row.action,
        origin=file.origin,
        references=tuple(file.references),
        samples_match=tuple(Sample(text, {file.key: code}, also=tuple(row.signature)) for text, code in lines),
        samples_no_match=negatives,
        fingerprint=compute_fingerprint(match),
        table=file.table,
        yields_to=tuple(row.signature),
    )
