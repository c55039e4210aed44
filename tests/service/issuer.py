"""A small OpenID Connect provider on a real socket: it checks what a client must send, and lies when a test wants it
to.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET = "triage", "a client's secret"


@functools.cache
def key(_: int) -> rsa.RSAPrivateKey:
    """One key for each number: they take long to make."""
    return rsa.generate_private_key(65537, 2048)


def url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """`person` are claims of whoever signs in next; `forge` may change header and claims of the next ID token, `key`
    sign it with another key.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = url
        self.person: dict[str, Any] = {"sub": "1", "email": "anna@example.org", "groups": ["staff", "curators"]}
        self.forge: Callable[[dict[str, Any], dict[str, Any]], None] = lambda header, claims: None
        self.own_key = self.key = key(0)
        self.codes: dict[str, dict[str, str]] = {}
        self.refused: list[str] = []
        self.deny = False

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.name,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def keys(self) -> dict[str, Any]:
        numbers = self.own_key.public_key().public_numbers()
        n, e = (url64(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": n, "e": e}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes next; the person has said yes."""
        wanted = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        wrong = [name for name, value in wanted.items() if asked.get(name) != value]
        wrong += [name for name in ("state", "nonce", "code_challenge", "redirect_uri") if not asked.get(name)]
        wrong += [] if "openid" in asked.get("scope", "").split() else ["scope"]
        self.refused += wrong
        if self.deny or wrong:
            return f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': asked.get('state', '')})}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, asked: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """An ID token for a code that was given to this client, once, and whose verifier fits."""
        code = self.codes.pop(asked.get("code", ""), None)
        given = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if (
            code is None
            or authorization not in (f"Basic {given}", f"Basic {_quoted()}")
            or asked.get("redirect_uri") != code["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        if url64(hashlib.sha256(asked.get("code_verifier", "").encode()).digest()) != code["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        header: dict[str, Any] = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        claims = {"iss": self.name, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": code["nonce"], **self.person}
        self.forge(header, claims)
        return 200, {
            "access_token": secrets.token_urlsafe(),
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self._signed(header, claims),
        }

    def _signed(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        body = ".".join(url64(json.dumps(part).encode()) for part in (header, claims))
        if header["alg"] == "none":
            return f"{body}."
        if header["alg"] == "HS256":
            return f"{body}.{url64(hmac.digest(json.dumps(self.keys()).encode(), body.encode(), 'sha256'))}"
        return f"{body}.{url64(self.key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _quoted() -> str:
    from urllib.parse import quote

    return base64.b64encode(f"{quote(CLIENT)}:{quote(SECRET)}".encode()).decode()


@contextlib.contextmanager
def issuing() -> Iterator[Issuer]:
    """A provider for a while."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            if asked.path == "/.well-known/openid-configuration":
                self._answer(200, issuer.metadata())
            elif asked.path == "/keys":
                self._answer(200, issuer.keys())
            elif asked.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorize(dict(parse_qsl(asked.query))))
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._answer(404, {})

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._answer(*issuer.token(form, self.headers.get("Authorization", "")))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
