"""WebHDFS for tests, as its REST is documented: `webhdfs_server.py DIRECTORY` serves its files and prints the port.

OPEN answers with a redirect to a data node, which is this server again. What is below a directory `secret` is refused,
and data nodes answer with an error for what is below `broken`.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

ROOT = Path(sys.argv[1])
PREFIX = "/webhdfs/v1"


class Handler(BaseHTTPRequestHandler):
    """Answers GETFILESTATUS, LISTSTATUS and OPEN."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        path = Path(unquote(parts.path.removeprefix("/data").removeprefix(PREFIX)))
        if ROOT / "secret" in (path, *path.parents):
            self._refuse(403, "AccessControlException", "Permission denied")
        elif not path.exists():
            self._refuse(404, "FileNotFoundException", f"File does not exist: {path}")
        elif query["op"].upper() == "OPEN" and not parts.path.startswith("/data"):
            place = f"http://{self.headers['Host']}/data{PREFIX}{quote(str(path))}?{parts.query}"
            self._send(307, b"", {"Location": place})
        elif query["op"].upper() == "OPEN" and ROOT / "broken" in path.parents:
            self._refuse(403, "IOException", "ValueError: no tokens left\n" * 1000)
        elif query["op"].upper() == "OPEN":
            data, start = path.read_bytes(), int(query.get("offset", 0))
            stop = start + int(query["length"]) if "length" in query else len(data)
            self._send(200, data[start:stop])
        elif query["op"].upper() == "LISTSTATUS":
            rows = [self._status(child, child.name) for child in sorted(path.iterdir())]
            self._send_json(200, {"FileStatuses": {"FileStatus": rows}})
        else:
            self._send_json(200, {"FileStatus": self._status(path, "")})

    def _status(self, path: Path, name: str) -> dict[str, Any]:
        stat = path.stat()
        kind = "DIRECTORY" if path.is_dir() else "FILE"
        size = 0 if path.is_dir() else stat.st_size
        return {"pathSuffix": name, "type": kind, "length": size, "modificationTime": int(stat.st_mtime * 1000)}

    def _refuse(self, status: int, kind: str, message: str) -> None:
        self._send_json(status, {"RemoteException": {"exception": kind, "message": message}})

    def _send_json(self, status: int, document: object) -> None:
        self._send(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
