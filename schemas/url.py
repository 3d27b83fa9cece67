"""URLs as messages, tables and file names may show them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
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
    """Whether it is on this machine, where no proxy is to be asked."""
    return any(host in url for host in ("//127.", "//localhost", "//[::1]"))


def without_secrets(text: str, url: str) -> str:
    """A message in which a URL, and what in it is secret, stand as they may be shown."""
    for whole in (url, url.rstrip("/")):
        if "://" in whole:
            text = text.replace(whole, shown_url(whole))
    return without(text, [secret for secret in _secrets(url) if len(secret) > 3])


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without secrets, also where it has them escaped: as JSON, in a URL, in a page."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = _escaped(secret).sub("***", text)
    return text


def _secrets(url: str) -> list[str]:
    """The password of a URL, or a user without one, its query, and what clients send in a header for them."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    if parts.username is None:
        return [parts.query]
    user, password = unquote(parts.username), unquote(parts.password or "")
    basic = b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode()
    return [parts.query, password or user, basic]


@lru_cache(64)
def _escaped(secret: str) -> re.Pattern[str]:
    return re.compile("".join(map(_forms, secret)))


def _forms(character: str) -> str:
    """A pattern of a character as it may be written; of a letter or digit of ASCII it is itself."""
    if character.isascii() and character.isalnum():
        return character
    # As often as a server and a proxy before it may have escaped what they quote.
    backslashes = "\\\\{0,8}" if character != "\\" else "\\\\{0,7}"
    units = character.encode("utf-16-be", "replace").hex()
    json = "".join(f"\\\\{{1,8}}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    percent = "".join(f"%(?i:{byte:02x})" for byte in character.encode("utf-8", "replace"))
    number = ord(character)
    entities = "|".join([f"&#0*{number};", f"&#(?i:x0*{number:x});", *_NAMED.get(character, ())])
    return f"(?:{backslashes}{re.escape(character)}|{json}|{percent}|{entities})"


_NAMED = {"&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;",), "'": ("&apos;",)}
