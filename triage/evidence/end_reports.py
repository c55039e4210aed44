"""Sentences that report only that a part of a job ended: `Task failed.`, `run.sh: training failed with status 1`.

Every launcher, shell and workflow system words this in its own way. So the words decide: all are names of parts of a
job, words of ending, or words that add nothing. Any other word says more.
"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

_LONGEST = 400
# Names, ids and places stand in brackets or quotes.
_NAMES = lazy_re(r"\[[^\]]{0,200}\]|<[^>]{0,200}>|\([^()]{0,200}\)|'[^']{0,200}'|\"[^\"]{0,200}\"")
# Who writes it: `run.sh: `, `srun: error: node7: `; not `KeyboardInterrupt: terminated`.
_WRITER = lazy_re(r"^(?:(?!\w{1,40}Interrupt: )[A-Za-z][\w.@/-]{0,80}(?:\[\d{1,8}\])?: ){0,4}")
_PART = (
    r"app(?:lication)?|bash|child(?:ren)?|cluster|command|compiler|container|execution|jobs?|launcher|ld|linker|main|pod|"
    r"process(?:es)?|prog(?:ram)?|ranks?|run|script|shell|stage|steps?|sub-?(?:command|process)(?:s|es)?|tasks?|training|"
    r"workers?|workflow"
)
_END = r"died|ended|exit(?:code|ed|ing|s)?|fail(?:ed|s|ure)?|finished|return(?:ed|s)|terminated"
_NOTHING = (
    r"a|abnormally|an|and|at|by|code|completed|detected|errors?|fatal|for|from|had|has|have|in|is|its|more|non|nonzero|of|"
    r"on|one|or|others?|signal|some|state|status|that|the|unexpectedly|unsuccessfully|was|were|with|zero"
)
_SENTENCE = lazy_re(rf"(?i)[\W\d_]*(?:(?:{_PART}|{_END}|{_NOTHING})(?![^\W\d_])[\W\d_]*)+")
_ENDS = lazy_re(rf"(?i)(?<![^\W\d_])(?:{_END})(?![^\W\d_])")


def reports_only_end(line: str) -> bool:
    """Whether a line says no more than that a part of a job ended, perhaps with a status."""
    text = line.strip()
    if len(text) > _LONGEST or text.endswith(":"):
        return False
    text = _NAMES.sub(" ", _WRITER.sub("", text))
    return _ENDS.search(text) is not None and _SENTENCE.fullmatch(text) is not None
