"""Hostile HTTP requests: what a client can send besides files. Each is the bytes on the wire, or a form."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

BOUNDARY = b"b"
PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n'


@dataclass(frozen=True, slots=True)
class RequestCase:
    """A request and the statuses that may answer it; 0 stands for a connection that is closed without an answer."""

    name: str
    data: bytes
    statuses: tuple[int, ...]


def post(path: str, body: bytes, kind: str = "application/json", *more: str, length: int | None = None) -> bytes:
    """Return a request with a body; `length` is what its header claims."""
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", f"Content-Length: {size}", *more]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body


def get(target: bytes, *more: bytes) -> bytes:
    """Return a request without a body."""
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", *more, b"", b""])


def form(*parts: bytes, end: bytes = b"--b--\r\n") -> bytes:
    """Return an upload of these parts."""
    return post("/api/v1/uploads", b"".join(parts) + end, "multipart/form-data; boundary=b")


INGEST = "/api/v1/ingest"
DEEP = b'{"files": ' + b"[" * 100_000
BAD = (400, 413, 415, 422)
CASES = (
    RequestCase("json: deep nesting", post(INGEST, DEEP), BAD),
    RequestCase("json: closed deep nesting", post(INGEST, DEEP + b"]" * 100_000 + b"}"), BAD),
    RequestCase("json: number without end", post(INGEST, b'{"source": ' + b"9" * 100_000 + b"}"), BAD),
    RequestCase("json: NaN and infinity", post(INGEST, b'{"source": NaN, "name": -Infinity}'), BAD),
    RequestCase("json: keys twice in a request", post(INGEST, b'{"source": "a", "source": "b"}'), (400, 404, 422)),
    RequestCase("json: half of a surrogate pair", post(INGEST, b'{"source": "\\ud800"}'), (400, 404, 422)),
    RequestCase("json: not UTF-8", post(INGEST, b'{"source": "\xff\xfe"}'), BAD),
    RequestCase("json: in UTF-16", post(INGEST, json.dumps({"source": "a"}).encode("utf-16")), (400, 404, 422)),
    RequestCase("json: NUL in a text", post(INGEST, b'{"source": "a\\u0000b"}'), (400, 404, 422)),
    RequestCase("json: a million keys", post(INGEST, json.dumps({str(n): n for n in range(60_000)}).encode()), BAD),
    RequestCase(
        "body: compressed bomb",
        post(INGEST, gzip.compress(bytes(1 << 22)), "application/json", "Content-Encoding: gzip"),
        BAD,
    ),
    RequestCase("body: wrong type", post(INGEST, b"<!DOCTYPE x [<!ENTITY a 'b'>]>", "application/xml"), BAD),
    RequestCase("body: claims more than there is", post(INGEST, b"{}", length=1000), (0, 400, 408, 422)),
    RequestCase("body: negative length", post(INGEST, b"{}", length=-1), (0, 400)),
    RequestCase(
        "body: length without end", post(INGEST, b"{}").replace(b"Length: 2", b"Length: " + b"9" * 300), (0, 400, 413)
    ),
    RequestCase("form: without an end", form(PART % (b"a.log", b"x"), end=b""), (400,)),
    RequestCase("form: no boundary", post("/api/v1/uploads", b"x", "multipart/form-data"), (400, 415, 422)),
    RequestCase(
        "form: boundary of kilobytes",
        post("/api/v1/uploads", b"x", "multipart/form-data; boundary=" + "b" * 9999),
        (400, 413, 415, 431),
    ),
    RequestCase("form: header without end", form(b"--b\r\nContent-Disposition: " + b"a" * 100_000), (400, 413)),
    RequestCase("form: nothing", form(), (400, 422)),
    RequestCase("form: a file without a name", form(PART % (b"", b"x")), (202, 400, 422)),
    RequestCase("form: names that lead out", form(PART % (b"../../../tmp/triage-escaped.log", b"x\n")), (202,)),
    RequestCase("form: name of control characters", form(PART % (b"a\x01\x1b[2J.log", b"x\n")), (202, 400)),
    RequestCase("form: name of kilobytes", form(PART % (b"n" * 20_000, b"x\n")), (202, 400, 413)),
    RequestCase("form: empty file", form(PART % (b"a.log", b"")), (202, 400)),
    RequestCase("address: NUL and dots", get(b"/api/v1/incidents/..%2f..%2f%00"), (400, 404)),
    RequestCase("address: dots", get(b"/static/../../../../etc/passwd"), (400, 404)),
    RequestCase("address: encoded dots", get(b"/static/%2e%2e/%2e%2e/%2e%2e/etc/passwd"), (400, 404)),
    RequestCase("address: not UTF-8", get(b"/api/v1/incidents/%ff%fe"), (400, 404)),
    RequestCase("address: another host", get(b"http://169.254.169.254/latest/"), (400, 404, 421)),
    RequestCase("address: query without end", get(b"/api/v1/search?q=" + b"(" * 9000), (200, 400, 422, 431)),
    RequestCase(
        "address: operators of search",
        get(b"/api/v1/search?q=%22%22%20NEAR(%20OR%20*%20AND%20NOT%20^x"),
        (200, 400, 422),
    ),
    RequestCase("header: line feed in a value", get(b"/api/v1/health", b"X-A: a\nX-B: b"), (200, 400)),
    RequestCase("header: not Latin", get(b"/api/v1/health", b"Authorization: Bearer \xff\xfe\x80"), (200, 400, 401)),
    RequestCase(
        "header: range of bytes",
        get(b"/static/main.js", b"Range: bytes=0-0,1-1" + b",2-2" * 900),
        (200, 206, 400, 404, 416),
    ),
    RequestCase("smuggled: two lengths", post(INGEST, b"{}", "application/json", "Content-Length: 200"), (0, 400)),
    RequestCase(
        "smuggled: length and chunks",
        post(INGEST, b"0\r\n\r\nGET /x HTTP/1.1\r\n", "application/json", "Transfer-Encoding: chunked"),
        (0, 400, 422),
    ),
    RequestCase(
        "chunks: size without end",
        post(INGEST, b"f" * 99 + b"\r\n").replace(b"Content-Length: 101", b"Transfer-Encoding: chunked"),
        (0, 400, 413),
    ),
    RequestCase("not HTTP", bytes(range(256)) * 40, (0, 400)),
    RequestCase("TLS without TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), (0, 400)),
)
