"""The YAML file of a signature as pydantic models, and the JSON Schema for editors.

Imported only when files are compiled or checked; a catalog from the cache needs none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from triage.catalog import backtracking, regex
from triage.catalog.model import Engine

ID = r"^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]+(-[a-z0-9]+)*$"
BOUNDS = r"^(==|!=|<=|>=|<|>)\s*\d+(\.\d+)*(\s*,\s*(==|!=|<=|>=|<|>)\s*\d+(\.\d+)*)*$"
NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
URL = r"^https?://\S+$"
GROUP = r"^[a-z0-9]+(-[a-z0-9]+)*$"
WINDOW = r"^[1-9]\d{0,5}(s|m|h|d)$"
MAX_TITLE = 80


def make_error(message: str, hint: str) -> PydanticCustomError:
    """An error of a model with a hint for the author of the file."""
    return PydanticCustomError("signature", "{message}", {"message": message, "hint": hint})


def _require_pattern(value: str, engine: Engine = "re2") -> str:
    verify = backtracking.verify_backtracking_pattern if engine == "regex" else regex.verify_pattern
    try:
        verify(value)
    except regex.PatternError as error:
        raise make_error(str(error), error.hint) from None
    return value


def _require_text(value: str) -> str:
    if not value.strip():
        raise make_error("this is empty", "write a text or leave the key out")
    return value


Text = Annotated[str, AfterValidator(_require_text)]
Pattern = Annotated[str, AfterValidator(lambda value: _require_pattern(value))]
Name = Annotated[str, Field(pattern=NAME)]
Id = Annotated[str, Field(pattern=ID)]
Scope = Literal["same-rank", "same-host", "other-ranks", "any-rank"]
Indicates = Literal[
    "waiting",
    "stalled",
    "awaited",
    "peer-lost",
    "ending",
    "killed",
    "kill-reason",
    "stopped-by-launcher",
    "outside",
    "own-failure",
    "link",
    "node-lost",
]
Action = Literal["restart-job", "fix-config", "fix-code", "drain-node", "reset-gpu", "wait", "contact-vendor", "none"]


class Strict(BaseModel):
    """A model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Leaf(Strict):
    """Conditions on one piece of evidence; all that are set must hold."""

    engine: Engine = Field(
        "re2", description="What runs `text` and `not_text`; regex, with a time limit, only for what RE2 cannot do"
    )
    kind: Text | None = Field(
        None,
        description="Evidence kind: message, exception, terminate, exit, fatal-python, kernel, scheduler, inference",
    )
    component: Text | None = Field(
        None, description="Component that wrote it: NCCL, HCCL, c10d, Gloo, CUDA, Python, kernel, slurm …"
    )
    text: str | None = Field(
        None, description="RE2 pattern searched in the evidence's text; named groups become captures"
    )
    not_text: str | None = Field(None, description="RE2 pattern that must not be found in the text")
    fields: dict[Name, Pattern] = Field(
        default_factory=dict, description="Field name to RE2 pattern for the whole value"
    )
    context: bool = Field(
        False,
        description="Healthy ranks write it too: it must exist, but does not show where or when the failure began",
    )

    @field_validator("text", "not_text")
    @classmethod
    def _is_pattern(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else _require_pattern(value, info.data.get("engine", "re2"))

    @model_validator(mode="after")
    def _has_condition(self) -> Leaf:
        if self.engine == "regex" and self.text is None and self.not_text is None:
            raise make_error("`engine: regex` without a pattern", "give `text`, or leave `engine` out")
        if type(self) is Leaf and not self.has_leaf_key():
            raise make_error("this leaf has no condition", "give `text`, `fields`, `kind` or `component`")
        return self

    def can_bring_evidence(self) -> bool:
        """Whether it has a condition that selects evidence by itself."""
        return self.text is not None or self.kind is not None or bool(self.fields)

    def has_leaf_key(self) -> bool:
        """Whether any key of a leaf is set."""
        return self.can_bring_evidence() or self.component is not None or self.not_text is not None


class Condition(Leaf):
    """A leaf, or `any` / `all` of further conditions; `none` drops evidence that one of its leaves matches."""

    any: list[Condition] | None = Field(
        None, min_length=1, description="One of these holds; the evidence of all of them counts"
    )
    all: list[Condition] | None = Field(None, min_length=1, description="Each of these holds somewhere in the job")
    none: list[Leaf] = Field(default_factory=list, description="Evidence that one of these matches does not count")

    @model_validator(mode="after")
    def _one_form(self) -> Condition:
        forms = [self.has_leaf_key(), self.any is not None, self.all is not None]
        if sum(forms) > 1:
            hint = "nest them: `all:` with the parts as list items"
            raise make_error("use only one of `any`, `all` and leaf keys side by side", hint)
        if sum(forms) == 0 or (forms[0] and not self.can_bring_evidence()):
            raise make_error("there is no condition that can hold", "give `text`, `fields`, `kind`, `any` or `all`")
        if self.context and not forms[0]:
            raise make_error("`context` beside `any` or `all`", "write it into each of their parts")
        return self


class Edge(Strict):
    """A signature that follows from this one, or a group of them."""

    signature: Id | None = Field(None, description="The signature that follows")
    group: Annotated[str, Field(pattern=GROUP)] | None = Field(
        None, description="Instead of `signature`: all members of a group of groups.yaml"
    )
    scope: Scope | None = Field(None, description="On which ranks it follows; any-rank by default")
    window: Annotated[str, Field(pattern=WINDOW)] | None = Field(
        None, description="How long after this one the other may begin: 90s, 30m, 2h, 1d"
    )

    @model_validator(mode="after")
    def _names_one(self) -> Edge:
        if (self.signature is None) == (self.group is None):
            raise make_error("give either `signature` or `group`", "- {signature: ID}, or - {group: NAME}")
        return self


def parse_window(text: str | None) -> float | None:
    """The seconds of a window such as 90s; None without one."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return float(int(text[:-1]) * units[text[-1]]) if text else None


class Remediation(Strict):
    """What to do about the failure."""

    action: Action = "none"
    summary: str = Field(
        "", description="One sentence for a chat message; {host} {rank} {ranks} and captures are filled in"
    )
    steps: list[Text] = Field(default_factory=list)


class MatchSample(Strict):
    """A text that must match: read as a log; with `kind`, the sample is a piece of evidence itself."""

    text: Text
    captures: dict[Name, str] = Field(default_factory=dict)
    kind: Text | None = None
    component: str = ""
    fields: dict[Name, str] = Field(default_factory=dict)
    also: list[Id] = Field(default_factory=list, description="Other signatures that may match this sample too")


class NoMatchSample(MatchSample):
    """A text that must not match."""

    captures: dict[Name, str] = Field(default_factory=dict, max_length=0)
    why: str = ""


class Samples(Strict):
    """Texts that verify the patterns."""

    match: list[MatchSample] = Field(default_factory=list)
    no_match: list[NoMatchSample] = Field(default_factory=list)


class SignatureFile(Strict):
    """One failure mode: how to recognise it, what it explains, and what to do."""

    model_config = ConfigDict(extra="forbid", title="triage signature")

    id: Id = Field(
        description="<domain>.<slug>, the file's path: signatures/<domain>/<slug>.yaml; never renamed or reused"
    )
    revision: int = Field(ge=1, description="Raised when `match` changes")
    title: Text = Field(json_schema_extra={"maxLength": MAX_TITLE})
    status: Literal["experimental", "stable", "deprecated"]
    replaced_by: Id | None = Field(None, description="The successor of a deprecated signature")
    role: Literal["cause", "symptom", "either", "confirmation", "noise", "guide"]
    severity: Literal["info", "warning", "error", "fatal"] = Field(description="By the action needed")
    match: Condition | None = Field(None, description="Condition on the evidence; left out for role guide")
    blames: Name | None = Field(None, description="The capture that names the rank (or ranks) at fault")
    indicates: Indicates | None = Field(
        None, alias="tells", description="What it indicates about its rank, for the rules across ranks"
    )
    leads_to: list[Edge] = Field(default_factory=list, description="What this finding explains")
    applies_to: dict[Text, Annotated[str, Field(pattern=BOUNDS)]] = Field(
        default_factory=dict, description='Version bounds: {nccl: ">=2.4"}'
    )
    meaning: str = ""
    impact: str = ""
    remediation: Remediation = Remediation(summary="")
    origin: str = Field("", description="Where this failure mode was described first")
    falsepositives: list[Text] = Field(default_factory=list)
    references: list[Annotated[str, Field(pattern=URL)]] = Field(default_factory=list)
    samples: Samples = Samples()

    @model_validator(mode="after")
    def _is_consistent(self) -> SignatureFile:
        if self.role == "guide" and self.match is not None:
            raise make_error("a guide must not have `match`", "remove `match`, or set another role")
        if self.role != "guide" and self.match is None:
            raise make_error("`match` is missing", "add it, or set the role `guide`")
        if self.replaced_by is not None and self.status != "deprecated":
            hint = "set `status: deprecated`, or leave `replaced_by` out"
            raise make_error("only a deprecated signature can have `replaced_by`", hint)
        return self


def json_schema() -> dict[str, Any]:
    """The schema of a signature file in JSON Schema draft-07, as it stands in signatures/schema.json."""
    return to_draft_seven(SignatureFile)


def to_draft_seven(model: type[BaseModel]) -> dict[str, Any]:
    """A model of this package in JSON Schema draft-07."""
    schema = model.model_json_schema(ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs", {})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_simplify(schema),
        "definitions": _simplify(definitions),
    }


def _simplify(node: Any) -> Any:
    """Without what only pydantic needs: generated titles, and `anyOf … null` of keys that can simply be left out."""
    if isinstance(node, list):
        return [_simplify(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    plain = {key: _simplify(value) for key, value in node.items() if not _is_pydantic_only(key, value)}
    choices = plain.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices and len(choices) == 2:
        del plain["anyOf"]
        chosen = next(choice for choice in choices if choice != {"type": "null"})
        # Draft-07 ignores everything beside a $ref, so the description goes around it.
        plain |= {"allOf": [chosen]} if "$ref" in chosen else chosen
    return plain


def _is_pydantic_only(key: str, value: Any) -> bool:
    return (
        key == "title" and isinstance(value, str) and value not in ("triage signature", "triage table of codes")
    ) or (key == "default" and not isinstance(value, dict))
