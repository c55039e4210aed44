"""Generate prose: sentences of healthy programs, tests, configurations and manuals that use the words of a pattern.

A pattern that matches such a sentence would call a job failed because of a word in it. Pieces of a pattern of at most
MOST_WORDS words are put into the sentences: longer ones are quotations, which nobody writes by chance.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.catalog.pattern_tree import parse_pattern
from triage.catalog.wordings import GAP, mark_spaces, spell_texts

MOST_WORDS = 4
MOST_PIECES = 40
FILLERS = ("7", "node")  # what stands for the parts of a pattern that differ from line to line
# A code such as 507035 or EI0006, which no sentence has by chance.
_CODE = lazy_re(r"\d{5}|\b[A-Z]{1,3}\d{4}")
_CLASS = lazy_re(r"\w*(?:Error|Exception)")  # `MemoryError: x` is how Python writes an exception, not a setting
_WORD_FORM = lazy_re(r"[^\W_](?:[\w'-]*\w)?")

TEMPLATES = (
    "INFO loader: {words}, skipped",
    "2026-03-04 10:11:12,345 INFO app.worker: {words} is handled, nothing to do",
    "{words} usually means that the setup is incomplete",
    "This usually means {words} in the first epoch",
    "tests/test_health.py::test_{name} PASSED [ 42%]",
    "# note: {words}",
    "on_failure: {words}",
    "{name}: true",
    '{"option": "on-{name}", "value": "{words}"}',
    '    """Return whether {words} was seen."""',
    "  --{name} VALUE   what to do on {words} (default: ignore)",
    "DEBUG monitor: registered handler for {words}",
    "INFO metrics: {words} = 0",
    "Alert rule '{words}' loaded",
    "[INFO] self-test {words} ok",
    "no {words} in the last 3 hours",
)

# Texts that many programs print for many reasons; none of them may be a cause by itself.
GENERAL = """
No route to host
OSError: [Errno 113] No route to host
curl: (7) Failed to connect to metrics.corp port 9091 after 3 ms: No route to host
Connection refused
ConnectionRefusedError: [Errno 111] Connection refused
ERROR redis client: Connect to 10.9.8.7:6379 failed : Connection refused
Connection reset by peer
ConnectionResetError: [Errno 104] Connection reset by peer
Connection timed out
TimeoutError: [Errno 110] Connection timed out
Network is unreachable
OSError: [Errno 101] Network is unreachable
Address already in use
OSError: [Errno 98] Address already in use
OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8080): address already in use
Error: listen EADDRINUSE: address already in use :::3000
Broken pipe
BrokenPipeError: [Errno 32] Broken pipe
Temporary failure in name resolution
socket.gaierror: [Errno -3] Temporary failure in name resolution
socket.gaierror: [Errno -2] Name or service not known
Permission denied
PermissionError: [Errno 13] Permission denied: '/data/cache/index'
bash: ./run.sh: Permission denied
Operation not permitted
PermissionError: [Errno 1] Operation not permitted
Invalid argument
OSError: [Errno 22] Invalid argument
Input/output error
Cannot allocate memory
Resource temporarily unavailable
BlockingIOError: [Errno 11] Resource temporarily unavailable
No such file or directory
FileNotFoundError: [Errno 2] No such file or directory: 'settings.yaml'
No such device
Device or resource busy
Killed
Terminated
Aborted
Segmentation fault
urllib.error.HTTPError: HTTP Error 429: Too Many Requests
requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://hub.example.com/api
requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://hub.example.com/api
RuntimeError: CUDA error: unknown error
RuntimeError: CUDA error: initialization error
RuntimeError: CUDA error: invalid argument
RuntimeError: CUDA error: operation not permitted
TimeoutError
TimeoutError: timed out
ValueError: invalid value
KeyError: 'name'
AssertionError
RuntimeError: internal error
EOFError
SystemExit: 1
ERROR feature store: system not yet initialized, call setup() first
ERROR billing: request failed with code 503
ssl.SSLError: [SSL] record layer failure (_ssl.c:2580)
""".strip().splitlines()


@functools.lru_cache(maxsize=4096)
def write_prose(pattern: str) -> tuple[str, ...]:
    """Sentences with the words of a pattern, without those that have a code."""
    pieces = dict.fromkeys(piece for filler in FILLERS for piece in _list_pieces(pattern, filler))
    chosen = [piece for piece in pieces if not _CODE.search(piece)][:MOST_PIECES]
    return tuple(
        fill_template(template, piece)
        for piece in chosen
        for template in TEMPLATES
        if not (template.startswith("{name}") and _CLASS.fullmatch(piece))
    )


def fill_template(template: str, phrase: str) -> str:
    """One sentence with these words."""
    name = re.sub(r"\W+", "_", phrase)
    return template.replace("{words}", phrase).replace("{name}", name)


def _list_pieces(pattern: str, filler: str) -> Iterator[str]:
    """The words of a pattern without its punctuation, at most MOST_WORDS in a row."""
    try:
        texts = spell_texts(parse_pattern(mark_spaces(pattern)))
    except (ValueError, RecursionError):
        return
    for text in texts:
        terms = _WORD_FORM.findall(re.sub(f"{GAP}+", f" {filler} ", text))
        for start in range(max(len(terms) - MOST_WORDS + 1, 1)):
            piece = terms[start : start + MOST_WORDS]
            if any(len(term) >= 4 and term != filler for term in piece):
                yield " ".join(piece)
