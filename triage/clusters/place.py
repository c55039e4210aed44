"""The place of an exception, where its words do not tell causes apart.

The place is `file:function` of the user's frame. It counts for exceptions and sentences that any code raises for any
reason, and for errors of the operating system and answers of services that the caller caused. For sentences of few
words, and where who raises a `ValueError` writes them, it is one more word of the headline. The statement counts
instead of the headline where the job raises a class of its own with values: the class writes the sentence, which
changes with releases and languages. The place of errors of CUDA, NCCL or the machine is chance.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.clusters.headline import Headline
from triage.clusters.rules import Rules
from triage.model.evidence import Evidence

# `raise Lost(path, offset)`: at least two values and no literal. One value alone may be the sentence itself.
_STATEMENT = lazy_re(
    r"raise (?:\w{1,80}\.){0,8}(?P<type>\w{1,80})\("
    r"(?P<values>[\w.]{1,80}(?:, ?[\w.]{1,80}){1,8}),?\)(?: from \w{1,80})?$"
)
# `[agent/drain] …` and `agentd[82]: …`: which part of which program wrote the line.
_PROGRAM = lazy_re(
    r"\[(?:[\w.-]{1,60}/)*(?P<part>[A-Za-z][\w.-]{1,60})\] \S|(?P<program>[a-z][\w.-]{1,60})\[\d{1,8}\]: \S"
    r"|(?P<logger>[a-z][\w-]{1,60}): (?:FATAL|CRITICAL|ERROR|error|fatal)\b"
)
_NAME_PART = lazy_re(r"[^\W_]+")
# What a service answers for reasons of its own: it is down or busy, whoever asks.
_SERVICE_STATE = lazy_re(r"http(?:-class)?=(?:5\d\d|408|429)$")
# `msgpack.exceptions.ExtraData: `; not torch's, whose errors are raised later than they happen.
_LIBRARY_CLASS = lazy_re(r"(?!torch|jax|deepspeed|ray|vllm|megatron)(?:\w{1,80}\.){1,8}\w{1,80}(?::|$)")
_GENERIC_CLASS = ("unwrapped by generic-runtime",)
_FEW_WORDS = 2
_A_SENTENCE = 4


@dataclass(frozen=True, slots=True)
class Place:
    """`text` is empty where the place does not count.

    `kind` is `place` where only failures of one place are the same; `raiser` where the place counts as one more word,
    since another release may raise another class or use more words; `statement` where equal statements are the same.
    """

    kind: str = "place"
    text: str = ""

    @property
    def label(self) -> str:
        """What the trail calls it."""
        return "place, as one more word," if self.kind == "raiser" else self.kind


def raised_at(fact: Evidence) -> str:
    """Return `file:function` of the user's frame of an exception, "" where it is not known."""
    fields = fact.fields
    if not fields.get("type") or not fields.get("function"):
        return ""
    return f"{fields.get('file', '').rpartition('/')[2]}:{fields['function']}"


def printed_by(fact: Evidence) -> str:
    """Return the part of a program, or the program, that printed the first of its last lines, "" if it names none."""
    match = _PROGRAM.match(fact.text) if fact.kind == "ending" else None
    return (match["part"] or match["program"] or match["logger"]) if match else ""


def find_place(fact: Evidence, line: Headline, codes: Collection[str], length: int, rules: Rules) -> Place:
    """Return the place of a failure with this headline, whose message has `length` words."""
    name, where = fact.fields.get("type", ""), raised_at(fact)
    if not where or not (line.text.startswith(name) or line.trail == _GENERIC_CLASS):
        return Place()
    code = fact.fields.get("code", "")
    statement = _statement(code, name, rules)
    if statement:
        return Place("statement", f"{where}: {statement}")
    if not fact.fields.get("message") and code.startswith("assert "):  # a function asserts several conditions
        return Place(text=f"{where}: {code}")
    errnos = {code.removeprefix("errno=") for code in codes if code.startswith("errno=")}
    if errnos:
        return Place() if errnos & rules.machine_errnos else Place(text=where)
    if any(map(_SERVICE_STATE.match, codes)):
        return Place()
    if rules.placed_sentences.search(line.text) is not None or name in rules.placed_types - rules.authored_types:
        return Place(text=where)
    is_short = length <= _A_SENTENCE and (name == "OSError" or _is_of_library(fact.text, code))
    if is_short or name in rules.authored_types or (length <= _FEW_WORDS and not codes):
        return Place("raiser", where)
    return Place()


def _is_of_library(text: str, code: str) -> bool:
    """Whether a library other than torch raises a class of its own: what is wrong is what the user's frame gave it."""
    match = _LIBRARY_CLASS.match(text)
    return match is not None and not code.startswith("raise ")


def _statement(code: str, name: str, rules: Rules) -> str:
    """Return the statement that raises a class of the job's own with values, "" for others."""
    match = _STATEMENT.match(code)
    if match is None or match["type"] != name or hasattr(builtins, name):
        return ""
    values = match["values"]
    return "" if rules.sentences & set(_NAME_PART.findall(values)) else f"raise {name}({values})"
