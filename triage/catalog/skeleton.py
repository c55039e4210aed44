"""Write the skeleton of a signature file: it is readable at once, and `check` names what is still missing."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from triage.base.errors import OptionError
from triage.base.lazy_re import lazy_re
from triage.catalog.schema import ID, MAX_TITLE, json_schema
from triage.model.diagnosis import Role

SCHEMA = "schema.json"
PATTERN = "put the words of the message here"
PLACEHOLDER = "Describe in one line what happened"
_SEVERITY: dict[str, str] = {
    "cause": "fatal",
    "either": "fatal",
    "symptom": "error",
    "confirmation": "error",
}  # others: info
_PLAIN = lazy_re(r"[A-Za-z](?:[A-Za-z0-9 ,.()/_-]*[A-Za-z0-9).])?")
_YAML_KEYWORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}

_HEAD = """\
# yaml-language-server: $schema={schema}
# docs/signatures.md explains every key. `triage catalog check {path}` lists what is still missing.
id: {id:<22} # never renamed and never used again
revision: 1                # raise it when `match` changes
# At most {max_title} characters:
title: {title}
status: experimental       # stable after it has been verified on real jobs
role: {role:<20} # cause | symptom | either | confirmation | noise | guide
severity: {severity:<16} # info | warning | error | fatal, by the action needed
"""
_MATCH = """\
match:
  any:                     # one of these holds; `all:` if each must hold somewhere in the job
    # The words of the message without what differs from job to job.
    # (?P<name>…) captures a part; use it as {{name}} below.
    # The scan looks for four letters or more in a row, which must be rare in healthy logs.
    - text: '{pattern}'
  # none:                  # lines that match one of these are ignored
  #   - text: 'retrying'
# blames: rank             # the capture that names the rank at fault, if the message names it
leads_to: []               # its effects: - {{signature: torch.collective-timeout, scope: other-ranks}}
"""
_TEXTS = """\
meaning: ""                # what happened, in one or two sentences
impact: ""                 # what it does to the job
remediation:
  action: none             # restart-job | fix-config | fix-code | drain-node | reset-gpu | wait | contact-vendor | none
  summary: ""              # one sentence for a chat message; {host}, {rank}, {ranks} and captures are filled in
  steps: []                # exact commands or settings, one per line
falsepositives: []         # when it matches although this did not happen
references: []             # permanent addresses
"""
_SAMPLES = """\
samples:
  match: []                # real log lines with their prefix; private names replaced
    # - text: "[rank3]: RuntimeError: …"
    #   captures: {name: value}
  no_match: []             # similar lines that must not match
    # - {text: "…", why: "the job continues"}
"""


def write_skeleton(
    identifier: str, directory: Path, known: Collection[str], *, title: str | None = None, role: Role = "cause"
) -> Path:
    """Write `<directory>/<domain>/<slug>.yaml` and return its path; also the schema for editors, if none exists.

    `known` are the ids in use. OptionError for an unusable id or title, and when the file exists.
    """
    path = directory / f"{identifier.replace('.', '/', 1)}.yaml"
    return write_signature_file(
        identifier, directory, known, title, format_skeleton(identifier, path, title or PLACEHOLDER, role)
    )


def write_signature_file(
    identifier: str, directory: Path, known: Collection[str], title: str | None, content: str
) -> Path:
    """Write this content as the file of a new signature and return its path. OptionError as in `write_skeleton`."""
    _check_id_and_title(identifier, known, title)
    path = directory / f"{identifier.replace('.', '/', 1)}.yaml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
        if not (directory / SCHEMA).exists():
            (directory / SCHEMA).write_text(
                json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    except FileExistsError as error:
        raise OptionError(f"{error.filename} already exists", hint="choose another id, or edit that file") from None
    except OSError as error:
        hint = "give -d a directory that you can write to"
        raise OptionError(f"cannot write {path}: {error.strerror}", hint=hint) from None
    return path


def format_skeleton(identifier: str, path: Path, title: str = PLACEHOLDER, role: Role = "cause") -> str:
    """The text of the skeleton file."""
    head = _HEAD.format(
        schema=f"../{SCHEMA}",
        path=path,
        id=identifier,
        title=_quote_scalar(title),
        max_title=MAX_TITLE,
        role=role,
        severity=_SEVERITY.get(role, "info"),
    )
    matching = role != "guide"
    return head + (_MATCH.format(pattern=PATTERN) if matching else "") + _TEXTS + (_SAMPLES if matching else "")


def _check_id_and_title(identifier: str, known: Collection[str], title: str | None) -> None:
    if re.fullmatch(ID.removeprefix("^").removesuffix("$"), identifier) is None:
        hint = "write <domain>.<slug> with small letters, digits and hyphens, such as cuda.out-of-memory"
        raise OptionError(f"{identifier!r} is not a valid id", hint=hint)
    if identifier in known:
        hint = "ids are never used again: choose another one, or edit that signature"
        raise OptionError(f"the id {identifier} is already used", hint=hint)
    if title is not None and not (title.strip() and title.isprintable() and len(title) <= MAX_TITLE):
        hint = "shorten it; details go into `meaning`"
        raise OptionError(f"the title must be one line of 1 to {MAX_TITLE} characters", hint=hint)


def _quote_scalar(text: str) -> str:
    """The text as a YAML scalar: plain where that is safe, else in double quotes, which YAML reads as JSON does."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_KEYWORDS:
        return text
    return json.dumps(text, ensure_ascii=False)
