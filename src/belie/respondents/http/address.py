"""Where an endpoint is, and whether it needs a key.

Knows: base URLs, local hosts, the two environment variables. Does not know: what is sent there.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field

from yarl import URL

from belie.respondents.base import BadInput


@dataclass(frozen=True)
class Address:
    """``completions``: where chat requests go. ``shown``: the base URL without user, password and query."""

    completions: URL
    shown: str
    local: bool
    key: str | None = field(repr=False)


def locate(base_url: str | None, api_key: str | None) -> Address:
    """The address from the options, else from OPENAI_BASE_URL and OPENAI_API_KEY.

    Raises ``BadInput``: no URL, not an http(s) URL, no key for a host that is not local.
    """
    given = (base_url or os.environ.get("OPENAI_BASE_URL") or "").strip()
    if not given:
        raise BadInput(
            "No endpoint for http/…: give --base-url (for instance http://localhost:8000/v1) or set OPENAI_BASE_URL."
        )
    try:
        url = URL(given)
        host = url.host
        _ = url.port
    except ValueError:
        host = url = None
    if url is None or url.scheme not in ("http", "https") or not host:
        raise BadInput("The base URL is no http:// or https:// address; it looks like http://localhost:8000/v1.")
    path = url.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    shown = url.with_user(None).with_query(None).with_fragment(None).with_path(path or "/")
    local = _is_local(host)
    key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip() or None
    if key is None and url.user is None and not local:
        raise BadInput(f"No key for {host}: set OPENAI_API_KEY (only endpoints on this machine or network need none).")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise BadInput(
            "The key in OPENAI_API_KEY holds characters that no key has: copy it again, without line breaks."
        )
    return Address(
        url.with_fragment(None).with_path(f"{path}/chat/completions", keep_query=True), str(shown), local, key
    )


def _is_local(host: str) -> bool:
    if (
        host == "localhost"
        or host.endswith((".localhost", ".local", ".internal"))
        or ("." not in host and ":" not in host)
    ):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_private or address.is_loopback or address.is_unspecified
