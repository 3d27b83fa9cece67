"""URLs as messages, tables and file names may show them."""

from __future__ import annotations

import re
import socket
from base64 import b64encode
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit, urlunsplit


def shown_url(url: str) -> str:
    """A URL without its user, password, query and fragment, any of which may be a secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    host = parts.netloc.rpartition("@")[2]
    path = parts.path if host else parts.path.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, path, "", ""))


def is_local(url: str) -> bool:
    """Whether a URL is on this machine, for which no proxy may be used."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))  # 127.1, 0x7f.1
        except (OSError, ValueError):
            return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def without_secrets(text: str, url: str) -> str:
    """A message with a URL, and every secret in it, made fit to be shown."""
    return without(with_shown_url(text, url), patterns(secrets_of(url), 4))


def with_shown_url(text: str, url: str) -> str:
    """A text with a URL replaced by its `shown_url`."""
    for form in (url, url.rstrip("/")):
        if "://" in form and form in text:
            text = text.replace(form, shown_url(form))
    return text


def without(text: str, secrets: Iterable[re.Pattern[str]]) -> str:
    """A text with *** for whatever these patterns find."""
    for secret in secrets:
        text = secret.sub("***", text)
    return text


def patterns(secrets: Iterable[str], shortest: int) -> list[re.Pattern[str]]:
    """Patterns of the secrets with at least so many characters, also as escaped in JSON, a URL or a page."""
    long = {secret for secret in secrets if len(secret) >= shortest}
    return [re.compile("".join(map(_forms, secret))) for secret in sorted(long, key=lambda s: (-len(s), s))]


def secrets_of(url: str) -> set[str]:
    """The secrets of a URL: its password, or a user without one, its query, and the header that clients send
    for them."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return set()
    if parts.username is None:
        return {parts.query}
    whose = {(read(parts.username), read(parts.password or "")) for read in (str, unquote)}
    # Clients differ in how they encode user and password, and in what they do where that fails.
    basic = {
        b64encode(f"{user}:{password}".encode(encoding, "replace")).decode()
        for user, password in whose
        for encoding in ("utf-8", "latin-1")
    }
    return {parts.query, *(password or user for user, password in whose), *basic}


def _forms(character: str) -> str:
    """A pattern of a character in all forms it may be written in; ASCII letters and digits have only one."""
    if character.isascii() and character.isalnum():
        return character
    # As many as a server and a proxy before it may add when both escape what they quote.
    backslashes = "\\\\{0,8}" if character != "\\" else "\\\\{0,7}"
    units = character.encode("utf-16-be", "replace").hex()
    json = "".join(
        f"\\\\{{1,8}}u(?i:{units[position : position + 4]})" for position in range(0, len(units), 4)
    )
    percent = "".join(f"%(?i:{byte:02x})" for byte in character.encode("utf-8", "replace"))
    number = ord(character)
    entities = "|".join([f"&#0*{number};", f"&#(?i:x0*{number:x});", *_NAMED_ENTITIES.get(character, ())])
    return f"(?:{backslashes}{re.escape(character)}|{json}|{percent}|{entities})"


_NAMED_ENTITIES = {"&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;",), "'": ("&apos;",)}
