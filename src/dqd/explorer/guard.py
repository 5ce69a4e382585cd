"""Who may ask: only the browser that was given the link, under the name the server goes by, and only to read.

Anybody's page can send requests to this machine too, under any name that its author owns (DNS rebinding). So the Host
must be one of ours, the link's token buys one cookie once, and other sites' requests are refused.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_TARGET = LARGEST_HEADERS = 32_768  # bytes of path and query; of all headers together
POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
WELCOME = b"""<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/">
<link rel="icon" href="data:,"><title>dqd</title><p><a href="/">Open the explorer</a></p></html>"""


class Guard:
    """An ASGI application around another one. `say` tells the person at the terminal."""

    def __init__(self, app: App, port: int, names: tuple[str, ...], say: Callable[[str], None] = print) -> None:
        self.app, self.port, self.say = app, port, say
        self.hosts = [_authority(name, port) for name in names]
        self.token, self.spent = secrets.token_urlsafe(32), set[str]()
        self.secret, self.cookie = secrets.token_urlsafe(32), f"dqd-{port}"

    @property
    def link(self) -> str:
        """Works once."""
        return f"http://{self.hosts[0]}/?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := self._refusal(scope):
            await _answer(send, refusal[0], refusal[1].encode(), "text/plain; charset=utf-8")
        elif scope["path"] == "/" and "token" in _query(scope):
            await self._admit(scope, send)
        elif not self._is_known(scope):
            await _answer(send, 403, b"Open the link that dqd view printed in the terminal.\n", "text/plain")
        else:
            await self.app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and words, if the request is not one that our own page makes."""
        hosts = _all(scope, b"host")
        if len(hosts) != 1 or hosts[0] not in {*self.hosts, self._local(scope)}:
            return 421, "This server does not go by that name.\n"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "This server only shows.\n"
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_TARGET:
            return 414, "That address is too long.\n"
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEADERS:
            return 431, "These headers are too large.\n"
        if any(origin != f"http://{hosts[0]}" for origin in _all(scope, b"origin")):
            return 403, "Requests of other sites are refused.\n"
        navigates = _all(scope, b"sec-fetch-mode") in ([], ["navigate"]) and scope["path"] == "/"
        if not navigates and any(site not in ("same-origin", "none") for site in _all(scope, b"sec-fetch-site")):
            return 403, "Requests of other sites are refused.\n"
        return None

    def _local(self, scope: Scope) -> str | None:
        """The address that the connection came to; nobody's name can stand for it."""
        server = scope.get("server")
        try:
            return _authority(str(ipaddress.ip_address(server[0])), self.port) if server else None
        except ValueError:
            return None

    async def _admit(self, scope: Scope, send: Send) -> None:
        given = _query(scope)["token"]
        if len(given) == 1 and secrets.compare_digest(given[0].encode(), self.token.encode()):
            self.spent.add(self.token)
            self.token = secrets.token_urlsafe(32)
            cookie = f"{self.cookie}={self.secret}; HttpOnly; SameSite=Strict; Path=/"
            # A page instead of a redirect: the cookie is strict, so what follows must come from here.
            await _answer(send, 200, WELCOME, "text/html; charset=utf-8", [(b"set-cookie", cookie.encode())])
        elif self._is_known(scope):
            await _answer(send, 200, WELCOME, "text/html; charset=utf-8")
        else:
            if given[0] in self.spent:
                self.say(f"That link was used already; here is another: {self.link}")
            words = b"This link does not work, or worked once already. The terminal of dqd view shows the newest one.\n"
            await _answer(send, 403, words, "text/plain")

    def _is_known(self, scope: Scope) -> bool:
        jar = SimpleCookie()
        try:
            jar.load("; ".join(_all(scope, b"cookie")))
        except CookieError:
            return False
        return self.cookie in jar and secrets.compare_digest(jar[self.cookie].value.encode(), self.secret.encode())


def _authority(name: str, port: int) -> str:
    """What a Host header says; browsers leave out port 80."""
    host = f"[{name}]" if ":" in name else name
    return host if port == 80 else f"{host}:{port}"


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sending


async def _answer(
    send: Send, status: int, body: bytes, kind: str, more: list[tuple[bytes, bytes]] | None = None
) -> None:
    length = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*length, *(more or []), *HEADERS]})
    await send({"type": "http.response.body", "body": body})
