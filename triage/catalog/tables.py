"""Tables of codes: one file whose rows become signatures, for codes that one grammar prints and a list explains (Xid,
SXid, CANN).

All rows share one pattern, which the scan and the matcher look for once; a row asks which code it captured. A row is a
signature like any other, with an id of its own that never changes: `<table>-<code>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from triage.catalog import codec, schema
from triage.catalog.model import Edge, Leaf, Sample, Signature
from triage.catalog.regex import named_groups
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
    """One code: what it is called, what it says, and what to do. Words of the table may use {code}, {mnemonic} and
    {says}.
    """

    code: Annotated[str, Field(pattern=CODE)] = Field(
        description="As it is printed; in lower case, the end of the signature's id"
    )
    mnemonic: str = Field("", description="The name that the vendor gives the code")
    says: Text = Field(description="What it says, in a few words that fit a title")
    role: Literal["cause", "symptom", "either", "confirmation", "noise"]
    action: Action
    severity: Literal["info", "warning", "error", "fatal"] | None = Field(
        None, description="Where it is not what the role suggests"
    )
    values: list[Text] = Field(default_factory=list, description="Other spellings of the code in a log")
    signature: list[Id] = Field(
        default_factory=list, description="Signatures that say more about this code: they come before the row"
    )


class Advice(Strict):
    summary: Text
    steps: list[Text] = Field(default_factory=list)


class NoMatch(Strict):
    text: Text
    why: str = ""


class TableFile(Strict):
    """A list of codes that one pattern finds."""

    model_config = ConfigDict(extra="forbid", title="triage table of codes")

    table: Id = Field(description="<domain>.<slug>, the file's place; with `-<code>` behind it, the id of a row")
    revision: int = Field(ge=1, description="Raised when `match` or the codes of a row change")
    title: Text = Field(description="Of a row, such as 'Xid {code}: {says}'")
    status: Literal["experimental", "stable"]
    kind: Text | None = Field(None, description="Kind of the evidence")
    match: Pattern = Field(description="RE2 pattern with a group named as `key`")
    key: Name = Field(description="The group that captures the code")
    leads_to: list[schema.Edge] = Field(
        default_factory=list, description="What rows that are a cause, or either, explain"
    )
    meaning: str = ""
    impact: str = ""
    remediation: dict[Action, Advice] = Field(description="For each action of a row: summary and steps")
    origin: str = ""
    references: list[Annotated[str, Field(pattern=schema.URL)]] = Field(default_factory=list)
    sample: Text = Field(description="A line of the log with {code} in it; every row must match its own")
    value_sample: Text | None = Field(
        None, description="The same for the other spellings, if they stand in another line"
    )
    no_match: list[NoMatch] = Field(default_factory=list, description="Lines that no row may match")
    rows: list[Row] = Field(min_length=1)

    @model_validator(mode="after")
    def _whole(self) -> TableFile:
        if self.key not in {name for name, _ in named_groups(self.match)}:
            raise PydanticCustomError(
                "key", "`match` has no group {key}", {"key": self.key, "hint": f"write (?P<{self.key}>…) into it"}
            )
        if "{code}" not in self.sample or "{code}" not in self.title:
            raise PydanticCustomError(
                "code",
                "`sample` and `title` must hold {what}",
                {"what": "{code}", "hint": "write it where the code stands"},
            )
        missing = sorted({row.action for row in self.rows} - set(self.remediation))
        if missing:
            raise PydanticCustomError(
                "advice", "no remediation for {what}", {"what": ", ".join(missing), "hint": "add it for each action"}
            )
        codes = [row.code.lower() for row in self.rows]
        twice = sorted({code for code in codes if codes.count(code) > 1})
        if twice:
            raise PydanticCustomError(
                "twice", "the code {what} has two rows", {"what": ", ".join(twice), "hint": "keep one"}
            )
        return self


def json_schema() -> dict[str, Any]:
    """The schema of a table of codes in JSON Schema draft-07, as it stands in signatures/table.schema.json."""
    return schema.draft_seven(TableFile)


def expand(file: TableFile, path: str) -> list[Signature]:
    """The signatures of the rows. A row whose id one of its own `signature` has is theirs altogether."""
    edges = tuple(Edge(edge.signature, edge.scope, schema.seconds(edge.window)) for edge in file.leads_to)
    no_match = tuple(Sample(sample.text, why=sample.why) for sample in file.no_match)
    rows = [(row, f"{file.table}-{row.code.lower()}") for row in file.rows]
    found = []
    for index, (row, identifier) in enumerate(rows):
        if identifier not in row.signature:
            beside = (
                [Sample(file.sample.replace("{code}", rows[index - 1][0].code), why="another code")]
                if len(rows) > 1
                else []
            )
            found.append(_signature(file, row, identifier, path, edges, (*beside, *no_match)))
    return found


def _signature(
    file: TableFile, row: Row, identifier: str, path: str, edges: tuple[Edge, ...], no_match: tuple[Sample, ...]
) -> Signature:
    def say(text: str) -> str:
        return text.replace("{code}", row.code).replace("{mnemonic}", row.mnemonic).replace("{says}", row.says).strip()

    match = Leaf(kind=file.kind, text=file.match, values={file.key: (row.code, *row.values)})
    advice = file.remediation[row.action]
    first = Sample(say(file.sample), {file.key: row.code}, also=tuple(row.signature))
    line = file.value_sample or file.sample
    others = tuple(
        Sample(line.replace("{code}", value), {file.key: value}, also=tuple(row.signature)) for value in row.values
    )
    return Signature(
        id=identifier,
        revision=file.revision,
        title=say(file.title),
        status=file.status,
        role=row.role,
        severity=row.severity or _SEVERITY[row.role],
        match=match,
        path=path,
        leads_to=tuple(edge for edge in edges if edge.signature != identifier)
        if row.role in ("cause", "either")
        else (),
        meaning=say(file.meaning),
        impact=say(file.impact),
        summary=say(advice.summary),
        steps=tuple(say(step) for step in advice.steps),
        action=row.action,
        origin=file.origin,
        references=tuple(file.references),
        samples_match=(first, *others),
        samples_no_match=no_match,
        fingerprint=codec.fingerprint(match),
        table=file.table,
        yields_to=tuple(row.signature),
    )
