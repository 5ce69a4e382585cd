"""The explorer as a process: a port, a link, a browser."""

from __future__ import annotations

import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from dqd.explorer.app import build
from dqd.explorer.guard import Guard

PORT = 8765


def serve(
    root: Path, host: str = "127.0.0.1", port: int | None = None, *, browser: bool = True, say: Callable[[str], None]
) -> None:
    """Show what lies below `root` until Ctrl-C. Without a port: 8765, or any free one if that is taken."""
    app = build(root)
    with listening(host, port) as listener:
        guard = Guard(app, listener.getsockname()[1], names(host), say)
        say(f"Showing {root}\n\n  {guard.link}\n\nThe link works once. Ctrl-C ends the explorer.")
        if not is_loopback(host):
            say("Others on the network can reach this port. The connection is not encrypted, and the link is the key.")
        if browser:
            threading.Timer(0.5, webbrowser.open, (guard.link,)).start()
        uvicorn.Server(settings(guard)).run(sockets=[listener])


def settings(guard: Guard) -> uvicorn.Config:
    """Of the server: the strict parser of requests, no WebSockets, nothing said about itself."""
    return uvicorn.Config(
        guard,
        http="h11",
        ws="none",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        log_level="warning",
    )


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens; loopback and the own machine only, unless another host is asked for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(listener, host, port)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def _bind(listener: socket.socket, host: str, port: int | None) -> None:
    try:
        listener.bind((host, PORT if port is None else port))
    except OSError as error:
        if port is not None:
            raise OSError(f"--port: {port} on {host} cannot be had ({error.strerror}); choose another") from None
        listener.bind((host, 0))


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names(host: str) -> tuple[str, ...]:
    """What the server goes by, the name for its link first: the host that was asked for, and loopback's usual names."""
    if is_loopback(host):
        return (host, "127.0.0.1", "localhost", "::1")
    wildcard = host in ("0.0.0.0", "::")  # noqa: S104
    return ("localhost", "127.0.0.1", "::1", socket.gethostname()) if wildcard else (host,)
