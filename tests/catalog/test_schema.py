from __future__ import annotations

import json
from pathlib import Path

from triage.catalog import code_tables
from triage.catalog.schema import SignatureFile, json_schema

SHIPPED = Path(__file__).parents[2] / "signatures" / "schema.json"


def test_the_shipped_schema_is_current() -> None:
    """signatures/schema.json is that of the models (write json_schema() there if this fails)."""
    assert json.loads(SHIPPED.read_text(encoding="utf-8")) == json_schema()
    assert json.loads(SHIPPED.with_name("table.schema.json").read_text(encoding="utf-8")) == code_tables.json_schema()


def test_the_schema_is_draft_07() -> None:
    """The schema declares draft-07, uses its definitions, and every reference resolves."""
    schema = json_schema()
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    text = json.dumps(schema)
    assert "$defs" not in text
    assert "prefixItems" not in text
    references = {part.split('"')[0] for part in text.split('"$ref": "#/definitions/')[1:]}
    assert references
    assert references <= set(schema["definitions"])


def test_every_key_is_in_the_schema_and_no_other_is_allowed() -> None:
    """The schema has each key of the models and forbids unknown ones."""
    schema = json_schema()
    assert set(schema["properties"]) == {info.alias or name for name, info in SignatureFile.model_fields.items()}
    assert schema["additionalProperties"] is False
    assert all(part["additionalProperties"] is False for part in schema["definitions"].values())
    assert {"id", "revision", "title", "status", "role", "severity"} == set(schema["required"])
