"""URLs as messages, tables and file names may show them."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


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
    """A message in which a URL, its password and its query stand as they may be shown."""
    secrets = [url, url.rstrip("/"), urlsplit(url).query, urlsplit(url).password or ""]
    for secret in secrets:
        if len(secret) > 3:
            text = text.replace(secret, shown_url(secret) if "://" in secret else "***")
    return text
