"""Which addresses of a Dask scheduler may be used."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def check_address(address: str, insecure: bool, name: str = "executor") -> None:
    """Who can talk to a scheduler can run code on every machine of its cluster: across a network only encrypted."""
    scheme, _, rest = address.rpartition("://")
    if scheme not in ("", "tcp", "tls", "inproc"):
        raise ValueError(f"{name}: expected an address such as tls://host:8786, got {address!r}")
    host = urlsplit(f"//{rest}").hostname or ""
    if scheme in ("tls", "inproc") or insecure or _is_loopback(host):
        return
    raise ValueError(
        f"{name}: {address} is neither on this machine nor encrypted, so anybody on the way could run code on the "
        f"cluster; use tls://{rest}, or accept that with insecure=True (--insecure)"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
