"""Who may ask: 60 shapes of hostile requests are all refused, the link works once, and nothing else is said."""

import socket

import httpx
import pytest
from explorer.samples import make_run, served

from dqd.explorer.server import listening, names


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    make_run(root / "one")
    with served(root) as running:
        yield running


def raw(server, request: bytes) -> bytes:
    """What comes back for these bytes, at most its first 64 KiB."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while len(answer) < 65536 and (part := connection.recv(65536)):
            answer += part
    return answer


def ask(target="/api/runs", *, method="GET", host="127.0.0.1:{port}", cookie="{cookie}={secret}", **headers):
    """The text of a request; a header that is None is left out."""
    named = {"Host": host, "Cookie": cookie, "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items() if value is not None)]
    return "\r\n".join(lines) + "\r\n\r\n"


HOSTILE = {
    # Names that are not ours: rebinding, look-alikes, other spellings of loopback
    "no host": ask(host=None),
    "empty host": ask(host=""),
    "another host": ask(host="evil.example"),
    "another host, our port": ask(host="evil.example:{port}"),
    "no port": ask(host="127.0.0.1"),
    "another port": ask(host="127.0.0.1:1"),
    "our address as a subdomain": ask(host="127.0.0.1.evil.example:{port}"),
    "localhost as a subdomain": ask(host="localhost.evil.example:{port}"),
    "a subdomain of localhost": ask(host="evil.localhost:{port}"),
    "upper case": ask(host="LOCALHOST:{port}"),
    "a dot behind": ask(host="localhost.:{port}"),
    "short address": ask(host="127.1:{port}"),
    "address as a number": ask(host="2130706433:{port}"),
    "address in octal": ask(host="0177.0.0.1:{port}"),
    "address of all interfaces": ask(host="0.0.0.0:{port}"),
    "mapped address": ask(host="[::ffff:127.0.0.1]:{port}"),
    "another loopback address": ask(host="127.0.0.2:{port}"),
    "user before the host": ask(host="127.0.0.1:{port}@evil.example"),
    "user before us": ask(host="evil.example@127.0.0.1:{port}"),
    "two names in one": ask(host="127.0.0.1:{port}, evil.example"),
    "two hosts": ask().replace("Connection:", "Host: evil.example\r\nConnection:"),
    "forwarded host": ask(host="evil.example", X_Forwarded_Host="127.0.0.1:{port}"),
    "absolute target": ask("http://evil.example/api/runs"),
    # Requests that another site makes its visitor send
    "another origin": ask(Origin="http://evil.example"),
    "no origin at all": ask(Origin="null"),
    "our origin with TLS": ask(Origin="https://127.0.0.1:{port}"),
    "our origin without the port": ask(Origin="http://127.0.0.1"),
    "another name of ours as origin": ask(Origin="http://localhost:{port}"),
    "a script of another site": ask(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors"),
    "a script of the same site, another port": ask(Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors"),
    "a link of another site into the data": ask(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate"),
    "a frame of another site": ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="nested-navigate"),
    "a socket of another site": ask(
        "/", Upgrade="websocket", Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==", Origin="http://evil.example"
    ),
    # Methods
    **{method: ask(method=method) for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")},
    "CONNECT": ask("127.0.0.1:80", method="CONNECT"),
    "lower case method": ask(method="get"),
    # Without the cookie, or with something like it
    "no cookie": ask(cookie=None),
    "no cookie for the page": ask("/", cookie=None),
    "no cookie for its scripts": ask("/static/main.js", cookie=None),
    "empty cookie": ask(cookie="{cookie}="),
    "wrong cookie": ask(cookie="{cookie}=AAAA"),
    "half the cookie": ask(cookie="{cookie}={half}"),
    "more than the cookie": ask(cookie="{cookie}={secret}A"),
    "cookie of another name": ask(cookie="dqd={secret}"),
    "the token as cookie": ask(cookie="{cookie}={token}"),
    "the cookie as a password": ask(cookie=None, Authorization="Bearer {secret}"),
    "the cookie in the address": ask("/api/runs?{cookie}={secret}", cookie=None),
    "a cookie that is none": ask(cookie="{cookie}=\xe9; =; ;;;"),
    # Tokens
    "wrong token": ask("/?token=AAAA", cookie=None),
    "empty token": ask("/?token=", cookie=None),
    "half the token": ask("/?token={half_token}", cookie=None),
    "token twice": ask("/?token={token}&token={token}", cookie=None),
    "token in another place": ask("/api/runs?token={token}", cookie=None),
    "the cookie as token": ask("/?token={secret}", cookie=None),
    "token that is no text": ask("/?token=%ff%fe%00", cookie=None),
    # Not HTTP, or hardly
    "nothing like a request": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    "an older protocol": "GET /api/runs\r\n\r\n",
    "a header with a zero byte": ask(X_Thing="a\x00b"),
    "a header without a name": ask().replace("Connection:", ": x\r\nConnection:"),
    "a length below zero": ask(Content_Length="-1"),
    "two lengths": ask(Content_Length="0").replace("Connection:", "Content-Length: 5\r\nConnection:"),
    "a header of 80 kB": ask(X_Thing="a" * 80_000),
    "an address of 40 kB": ask("/api/runs?" + "a" * 40_000),
    # Known, but asking for what is not there
    "no such page": ask("/api"),
    "no such run": ask("/api/runs/00000000000000000000"),
    "no such file": ask("/static/nothing.js"),
    "a page of documentation": ask("/docs"),
    "a schema": ask("/openapi.json"),
    "a view that is no number": ask("/api/runs/{run}/views/x"),
    "a cell that is no number": ask("/api/runs/{run}/solutions?cells=-1"),
    "too many cells": ask("/api/runs/{run}/solutions?cells=" + ",".join(["1"] * 5_000)),
    "an empty cell": ask("/api/runs/{run}/solutions?cells=99999"),
    "a comparison with nobody": ask("/api/compare?runs=x"),
}


def test_there_are_at_least_60_shapes():
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_refused(server, name):
    run = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"][0]["id"]
    secret, token = server.guard.secret, server.guard.token
    words = {"port": server.port, "cookie": server.guard.cookie, "secret": secret, "half": secret[:20], "run": run}
    request = HOSTILE[name].format(**words, token=token, half_token=token[:20])
    answer = raw(server, request.encode("latin-1"))
    status = answer.split(b" ")[1] if answer.startswith(b"HTTP/") else b"none"
    assert status.startswith(b"4"), answer[:200]
    assert b"access-control" not in answer.lower()
    assert secret.encode() not in answer
    assert server.guard.token == token  # nothing was bought


def test_our_own_request_is_answered(server):
    words = {"port": server.port, "cookie": server.guard.cookie, "secret": server.guard.secret}
    assert raw(server, ask().format(**words).encode()).startswith(b"HTTP/1.1 200")
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert raw(server, ask(host=f"{host}:{server.port}").format(**words).encode()).startswith(b"HTTP/1.1 200")


def test_the_link_buys_one_cookie_once(server):
    link = server.guard.link
    first = httpx.get(link)
    assert first.status_code == 200
    assert "HttpOnly; SameSite=Strict; Path=/" in first.headers["set-cookie"]
    assert httpx.get(f"{server.address}/api/runs", cookies=first.cookies).status_code == 200
    second = httpx.get(link)
    assert second.status_code == 403
    assert "set-cookie" not in second.headers
    assert server.guard.link in server.said[-1]  # who has the old link is shown the new one, at the terminal
    assert httpx.get(link, cookies=first.cookies).status_code == 200  # the same browser may load it again


def test_the_token_has_at_least_128_bits(server):
    assert len(server.guard.token) * 6 >= 128
    assert len(server.guard.secret) * 6 >= 128


def test_every_answer_forbids_what_pages_could_be_talked_into(server):
    for path, cookies in (("/", server.cookie), ("/api/runs", server.cookie), ("/", {}), ("/static/x", server.cookie)):
        headers = httpx.get(server.address + path, cookies=cookies).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_the_link_leads_to_where_the_server_listens(tmp_path, host):
    make_run(tmp_path / "run")
    try:
        listener = listening(host, 0)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with served(tmp_path, host, listener) as running:
        assert httpx.get(running.guard.link).status_code == 200


def test_other_hosts_are_named_exactly():
    assert names("192.168.1.5") == ("192.168.1.5",)
    assert "evil.example" not in names("0.0.0.0")
