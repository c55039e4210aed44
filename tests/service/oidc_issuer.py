"""A small OpenID Connect provider on a real socket that checks requests and can send forged answers."""

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
def make_key(_: int) -> rsa.RSAPrivateKey:
    """Return one key per number; keys take long to make."""
    return rsa.generate_private_key(65537, 2048)


def base64url(data: bytes) -> str:
    """Return unpadded base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """The provider: `person` are the claims of the next user, `forge` changes the next ID token, `key` signs it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = url
        self.person: dict[str, Any] = {"sub": "1", "email": "anna@example.org", "groups": ["staff", "curators"]}
        self.forge: Callable[[dict[str, Any], dict[str, Any]], None] = lambda header, claims: None
        self.own_key = self.key = make_key(0)
        self.codes: dict[str, dict[str, str]] = {}
        self.refused: list[str] = []
        self.deny = False

    def metadata(self) -> dict[str, Any]:
        """Return the discovery document."""
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
        """Return the published keys."""
        numbers = self.own_key.public_key().public_numbers()
        n, e = (base64url(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": n, "e": e}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Return the address to which the browser goes next; the person agrees unless `deny` is set."""
        expected = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        wrong = [name for name, value in expected.items() if query.get(name) != value]
        wrong += [name for name in ("state", "nonce", "code_challenge", "redirect_uri") if not query.get(name)]
        wrong += [] if "openid" in query.get("scope", "").split() else ["scope"]
        self.refused += wrong
        if self.deny or wrong:
            return f"{query['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': query.get('state', '')})}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Return (status, answer): an ID token for a code of this client with the right verifier, once."""
        code = self.codes.pop(form.get("code", ""), None)
        credentials = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if (
            code is None
            or authorization not in (f"Basic {credentials}", f"Basic {_quoted_credentials()}")
            or form.get("redirect_uri") != code["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        if base64url(hashlib.sha256(form.get("code_verifier", "").encode()).digest()) != code["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        header: dict[str, Any] = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        claims = {"iss": self.name, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": code["nonce"], **self.person}
        self.forge(header, claims)
        return 200, {
            "access_token": secrets.token_urlsafe(),
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self._sign(header, claims),
        }

    def _sign(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        body = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
        if header["alg"] == "none":
            return f"{body}."
        if header["alg"] == "HS256":
            return f"{body}.{base64url(hmac.digest(json.dumps(self.keys()).encode(), body.encode(), 'sha256'))}"
        return f"{body}.{base64url(self.key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _quoted_credentials() -> str:
    from urllib.parse import quote

    return base64.b64encode(f"{quote(CLIENT)}:{quote(SECRET)}".encode()).decode()


@contextlib.contextmanager
def run_issuer() -> Iterator[Issuer]:
    """Run a provider, and stop it at the end."""

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
            address = urlsplit(self.path)
            if address.path == "/.well-known/openid-configuration":
                self._answer(200, issuer.metadata())
            elif address.path == "/keys":
                self._answer(200, issuer.keys())
            elif address.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorize(dict(parse_qsl(address.query))))
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
