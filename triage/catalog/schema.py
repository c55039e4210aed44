"""The YAML file of one signature as pydantic models, and the JSON Schema that editors check against.

Used only when files are compiled or checked; a loaded catalog comes from a cache that needs none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from triage.catalog import regex

ID = r"^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]+(-[a-z0-9]+)*$"
BOUNDS = r"^(==|!=|<=|>=|<|>)\s*\d+(\.\d+)*(\s*,\s*(==|!=|<=|>=|<|>)\s*\d+(\.\d+)*)*$"
NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
URL = r"^https?://\S+$"
WINDOW = r"^[1-9]\d{0,5}(s|m|h|d)$"
MAX_TITLE = 80


def _pattern(value: str) -> str:
    try:
        regex.verify(value)
    except regex.PatternError as error:
        raise PydanticCustomError("pattern", "{reason}", {"reason": str(error), "hint": error.hint}) from None
    return value


def _word(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "this is empty", {"hint": "write a text or leave the key out"})
    return value


Text = Annotated[str, AfterValidator(_word)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Name = Annotated[str, Field(pattern=NAME)]
Id = Annotated[str, Field(pattern=ID)]
Scope = Literal["same-rank", "same-host", "other-ranks", "any-rank"]
Tells = Literal["waiting", "peer-lost", "ending", "outside", "own-failure", "killed", "link", "node-lost"]
Action = Literal["restart-job", "fix-config", "fix-code", "drain-node", "reset-gpu", "wait", "contact-vendor", "none"]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Leaf(Strict):
    """Conditions on one evidence; all that are given must hold."""

    kind: Text | None = Field(
        None,
        description="Evidence kind: message, exception, terminate, exit, fatal-python, kernel, scheduler, inference",
    )
    component: Text | None = Field(None, description="Who spoke: NCCL, HCCL, c10d, Gloo, CUDA, Python, kernel, slurm …")
    text: Pattern | None = Field(
        None, description="RE2 pattern searched in the evidence's text; named groups become captures"
    )
    not_text: Pattern | None = Field(None, description="RE2 pattern that must not be found in the text")
    fields: dict[Name, Pattern] = Field(
        default_factory=dict, description="Field name to RE2 pattern for the whole value"
    )

    @model_validator(mode="after")
    def _says_something(self) -> Leaf:
        if type(self) is Leaf and not (has_leaf(self) or self.component is not None or self.not_text is not None):
            raise PydanticCustomError(
                "empty_leaf", "this leaf has no condition", {"hint": "give `text`, `fields`, `kind` or `component`"}
            )
        return self


class Condition(Leaf):
    """A leaf, or `any` / `all` of further conditions; `none` drops evidence that one of its leaves matches."""

    any: list[Condition] | None = Field(
        None, min_length=1, description="One of these holds; their evidence is brought together"
    )
    all: list[Condition] | None = Field(None, min_length=1, description="Each of these holds somewhere in the job")
    none: list[Leaf] = Field(default_factory=list, description="Evidence that one of these matches does not count")

    @model_validator(mode="after")
    def _one_form(self) -> Condition:
        forms = [
            has_leaf(self) or self.component is not None or self.not_text is not None,
            self.any is not None,
            self.all is not None,
        ]
        if sum(forms) > 1:
            hint = "nest them: `all:` with the parts as list items"
            raise PydanticCustomError(
                "forms", "use only one of `any`, `all` and leaf keys side by side", {"hint": hint}
            )
        if sum(forms) == 0 or (forms[0] and not has_leaf(self)):
            hint = "give `text`, `fields`, `kind`, `any` or `all`"
            raise PydanticCustomError("empty_leaf", "there is no condition that can hold", {"hint": hint})
        return self


def has_leaf(leaf: Leaf) -> bool:
    return leaf.text is not None or leaf.kind is not None or bool(leaf.fields)


class Edge(Strict):
    signature: Id
    scope: Scope = "any-rank"
    window: Annotated[str, Field(pattern=WINDOW)] | None = Field(
        None, description="How long after this one the other may begin: 90s, 30m, 2h, 1d"
    )


class Remediation(Strict):
    action: Action = "none"
    summary: str = Field(
        "", description="One sentence for a Slack line; {host} {rank} {ranks} and captures are filled in"
    )
    steps: list[Text] = Field(default_factory=list)


class MatchSample(Strict):
    """With `kind` the sample is an evidence as given; without, the text is read as a log."""

    text: Text
    captures: dict[Name, str] = Field(default_factory=dict)
    kind: Text | None = None
    component: str = ""
    fields: dict[Name, str] = Field(default_factory=dict)
    also: list[Id] = Field(default_factory=list, description="Other signatures that match this sample too, and may")


class NoMatchSample(MatchSample):
    captures: dict[Name, str] = Field(default_factory=dict, max_length=0)
    why: str = ""


class Samples(Strict):
    match: list[MatchSample] = Field(default_factory=list)
    no_match: list[NoMatchSample] = Field(default_factory=list)


class SignatureFile(Strict):
    """One failure mode: how to see it, what it explains, and what to do."""

    model_config = ConfigDict(extra="forbid", title="triage signature")

    id: Id = Field(
        description="<domain>.<slug>, the file's place: signatures/<domain>/<slug>.yaml; never renamed or reused"
    )
    revision: int = Field(ge=1, description="Raised when `match` changes")
    title: Text = Field(json_schema_extra={"maxLength": MAX_TITLE})
    status: Literal["experimental", "stable", "deprecated"]
    replaced_by: Id | None = Field(None, description="Of a deprecated signature: the one that took its place")
    role: Literal["cause", "symptom", "either", "confirmation", "noise", "guide"]
    severity: Literal["info", "warning", "error", "fatal"] = Field(description="By the action needed")
    match: Condition | None = Field(None, description="Over Evidence; left out for role guide")
    blames: Name | None = Field(None, description="The capture that names the rank (or ranks) at fault")
    tells: Tells | None = Field(None, description="What it says of the rank that shows it, for the rules across ranks")
    leads_to: list[Edge] = Field(default_factory=list, description="What this finding explains")
    applies_to: dict[Text, Annotated[str, Field(pattern=BOUNDS)]] = Field(
        default_factory=dict, description='Version bounds: {nccl: ">=2.4"}'
    )
    meaning: str = ""
    impact: str = ""
    remediation: Remediation = Remediation(summary="")
    origin: str = Field("", description="Where this failure mode was told")
    falsepositives: list[Text] = Field(default_factory=list)
    references: list[Annotated[str, Field(pattern=URL)]] = Field(default_factory=list)
    samples: Samples = Samples()

    @model_validator(mode="after")
    def _guides_have_no_match(self) -> SignatureFile:
        if self.role == "guide" and self.match is not None:
            raise PydanticCustomError(
                "guide", "a guide has no `match`", {"hint": "remove `match`, or give another role"}
            )
        if self.role != "guide" and self.match is None:
            raise PydanticCustomError("no_match", "`match` is missing", {"hint": "add it, or make the role `guide`"})
        if self.replaced_by is not None and self.status != "deprecated":
            hint = "set `status: deprecated`, or leave `replaced_by` out"
            raise PydanticCustomError("replaced", "only a deprecated signature is replaced by another", {"hint": hint})
        return self


def json_schema() -> dict[str, Any]:
    """The schema of a signature file in JSON Schema draft-07, as it stands in signatures/schema.json."""
    return draft_seven(SignatureFile)


def seconds(window: str | None) -> float | None:
    """`30m` as 1800."""
    return None if window is None else float(int(window[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[window[-1]])


def draft_seven(model: type[BaseModel]) -> dict[str, Any]:
    """A model of this package in JSON Schema draft-07."""
    schema = model.model_json_schema(ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs", {})
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_plain(schema), "definitions": _plain(definitions)}


def _plain(node: Any) -> Any:
    """Without what only pydantic needs: generated titles, and `anyOf … null` of keys that can simply be left out."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    plain = {key: _plain(value) for key, value in node.items() if not _is_noise(key, value)}
    choices = plain.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices and len(choices) == 2:
        del plain["anyOf"]
        chosen = next(choice for choice in choices if choice != {"type": "null"})
        # Draft-07 ignores everything beside a $ref, so the description goes around it.
        plain |= {"allOf": [chosen]} if "$ref" in chosen else chosen
    return plain


def _is_noise(key: str, value: Any) -> bool:
    return (
        key == "title" and isinstance(value, str) and value not in ("triage signature", "triage table of codes")
    ) or (key == "default" and not isinstance(value, dict))
