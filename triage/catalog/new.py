"""A skeleton of a signature file: it can be read at once, and `check` names what is still to be said."""

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
PLACEHOLDER = "Say in one line what happened"
_SEVERITY: dict[str, str] = {
    "cause": "fatal",
    "either": "fatal",
    "symptom": "error",
    "confirmation": "error",
}  # others: info
_PLAIN = lazy_re(r"[A-Za-z](?:[A-Za-z0-9 ,.()/_-]*[A-Za-z0-9).])?")
_WORDS_OF_YAML = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}

_HEAD = """\
# yaml-language-server: $schema={schema}
# docs/signatures.md explains every key. `triage catalog check {path}` says what is still missing.
id: {id:<22} # never renamed and never used again
revision: 1                # raise it when `match` changes
# At most {max_title} characters:
title: {title}
status: experimental       # stable once it has proved itself on real jobs
role: {role:<20} # cause | symptom | either | confirmation | noise | guide
severity: {severity:<16} # info | warning | error | fatal, by the action needed
"""
_MATCH = """\
match:
  any:                     # one of these holds; `all:` if each must hold somewhere in the job
    # The words of the message without what differs from job to job. (?P<name>…) keeps a part, to be used below as {{name}}.
    # Four letters or more in a row must be rare in healthy logs: that is what the scan looks for.
    - text: 'put the words of the message here'
  # none:                  # lines with these words do not count
  #   - text: 'retrying'
# blames: rank             # the capture that names the rank at fault, if the message itself does
leads_to: []               # what follows from it: - {{signature: torch.collective-timeout, scope: other-ranks}}
"""
_WORDS = """\
meaning: ""                # what it means, in a sentence or two
impact: ""                 # what it does to the job
remediation:
  action: none             # restart-job | fix-config | fix-code | drain-node | reset-gpu | wait | contact-vendor | none
  summary: ""              # one sentence for a chat message; {host}, {rank}, {ranks} and captures are filled in
  steps: []                # exact commands or settings, one a line
falsepositives: []         # when it matches and does not mean it
references: []             # permanent addresses
"""
_SAMPLES = """\
samples:
  match: []                # lines that really stood in a log, prefix and all; private names replaced
    # - text: "[rank3]: RuntimeError: …"
    #   captures: {name: value}
  no_match: []             # lines that look like it and are not
    # - {text: "…", why: "it goes on by itself"}
"""


def new(
    identifier: str, directory: Path, known: Collection[str], *, title: str | None = None, role: Role = "cause"
) -> Path:
    """Write `<directory>/<domain>/<slug>.yaml` and give its path; beside it the schema for editors, if none is there.

    `known` are the ids that are taken. Raises OptionError for an id or a title that cannot be used, and when the file
    exists.
    """
    path = directory / f"{identifier.replace('.', '/', 1)}.yaml"
    return claim(identifier, directory, known, title, skeleton(identifier, path, title or PLACEHOLDER, role))


def claim(identifier: str, directory: Path, known: Collection[str], title: str | None, content: str) -> Path:
    """Write this content as the file of a new signature and give its path. Raises OptionError as `new` does."""
    _check(identifier, known, title)
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
        raise OptionError(f"{error.filename} is there already", hint="choose another id, or edit that file") from None
    except OSError as error:
        raise OptionError(
            f"cannot write {path}: {error.strerror}", hint="give -d a directory that you may write"
        ) from None
    return path


def skeleton(identifier: str, path: Path, title: str = PLACEHOLDER, role: Role = "cause") -> str:
    """The text of the file."""
    head = _HEAD.format(
        schema=f"../{SCHEMA}",
        path=path,
        id=identifier,
        title=_scalar(title),
        max_title=MAX_TITLE,
        role=role,
        severity=_SEVERITY.get(role, "info"),
    )
    matching = role != "guide"
    return head + (_MATCH.format() if matching else "") + _WORDS + (_SAMPLES if matching else "")


def _check(identifier: str, known: Collection[str], title: str | None) -> None:
    if re.fullmatch(ID.removeprefix("^").removesuffix("$"), identifier) is None:
        raise OptionError(
            f"{identifier!r} is no id",
            hint="<domain>.<slug> of small letters, digits and hyphens, like cuda.out-of-memory",
        )
    if identifier in known:
        raise OptionError(
            f"the id {identifier} is taken", hint="ids are never used again: choose another, or edit that signature"
        )
    if title is not None and not (title.strip() and title.isprintable() and len(title) <= MAX_TITLE):
        raise OptionError(
            f"the title must be one line of 1 to {MAX_TITLE} characters",
            hint="say it shorter; details go into `meaning`",
        )


def _scalar(text: str) -> str:
    """As YAML: plain where that is safe, else in double quotes, which YAML reads as JSON does."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return json.dumps(text, ensure_ascii=False)
