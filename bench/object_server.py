"""Serve the files of a directory as the objects of one bucket, by the part of S3 that triage uses, on loopback.

Bodies go from the file to the socket by sendfile, so that a benchmark measures the client and not the server. It knows
no credentials, no writing and one bucket: `python bench/object_server.py DIRECTORY PREFIX` prints its port.
"""

from __future__ import annotations

import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_PAGE = 1000
_ROW = (
    '<Contents><Key>{}</Key><LastModified>2026-03-01T12:00:00.000Z</LastModified><ETag>"{}"</ETag><Size>{}</Size>'
    "<StorageClass>STANDARD</StorageClass></Contents>"
)


class ObjectServer(ThreadingHTTPServer):
    """The files of a directory, as objects whose keys begin with `prefix`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, directory: Path, prefix: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths = {f"{prefix}{path.name}": path for path in sorted(directory.iterdir())}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with a page of the listing, or with an object or a range of it."""
        place = urlsplit(self.path)
        _, _, key = unquote(place.path).lstrip("/").partition("/")
        if "list-type" in place.query:
            self._list({name: values[0] for name, values in parse_qs(place.query).items()})
        elif key in self.server.paths:
            self._send_object(self.server.paths[key])
        else:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_HEAD = do_GET  # noqa: N815

    def _list(self, query: dict[str, str]) -> None:
        names = [name for name in self.server.paths if name.startswith(query.get("prefix", ""))]
        first = int(query.get("continuation-token", "0"))
        rows = [
            _ROW.format(name, f"{name}-1", self.server.paths[name].stat().st_size)
            for name in names[first : first + _PAGE]
        ]
        more = first + _PAGE < len(names)
        token = f"<NextContinuationToken>{first + _PAGE}</NextContinuationToken>" if more else ""
        head = f"<KeyCount>{len(rows)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}"
        self._answer(200, f"<ListBucketResult>{head}{''.join(rows)}</ListBucketResult>".encode())

    def _send_object(self, path: Path) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start, stop, headers = 0, size, dict[str, str]()
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if wanted:
                start, stop = int(wanted[1]), min(size, int(wanted[2] or size) + 1)
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
            self._begin(206 if wanted else 200, stop - start, {**headers, "ETag": f'"{path.name}-1"'})
            self.wfile.flush()
            while start < stop and self.command == "GET":
                start += os.sendfile(self.connection.fileno(), file.fileno(), start, stop - start)

    def _answer(self, status: int, body: bytes) -> None:
        self._begin(status, len(body), {"Content-Type": "application/xml"})
        if self.command == "GET":
            self.wfile.write(body)

    def _begin(self, status: int, length: int, headers: dict[str, Any]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": length}.items():
            self.send_header(name, value)
        self.end_headers()


def main() -> None:
    """Serve until the process is ended."""
    server = ObjectServer(Path(sys.argv[1]), sys.argv[2])
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
