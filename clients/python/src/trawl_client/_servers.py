"""Chooses the server of a request."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class _Cooldown:
    """Until when (on the monotonic clock) a server is set aside and gets no requests, and why."""

    until: float
    reason: str


class Servers:
    """The base URLs of a client, used in round-robin order. Thread-safe.

    A server that failed is set aside for ``cooldown_s`` seconds; then one request tries it again, while the others
    still go to other servers. If every server is set aside, requests try all of them.
    """

    def __init__(self, urls: str | Sequence[str], cooldown_s: float) -> None:
        self.urls = base_urls(urls)
        self._cooldown_s = cooldown_s
        self._set_aside: dict[str, _Cooldown] = {}
        # Starts at random, so that many processes with one client each do not all begin with the first server.
        self._position = random.randrange(len(self.urls))
        self._lock = threading.Lock()

    def __str__(self) -> str:
        """The URLs, separated by commas."""
        return ", ".join(self.urls)

    def next(self, tried: Collection[str] = ()) -> str | None:
        """The server for the next try of a call that has already tried ``tried``; None if no other should be tried."""
        now = monotonic()
        with self._lock:
            untried = [url for url in self.urls if url not in tried]
            for url in untried:
                server = self._set_aside.get(url)
                if server is not None and server.until <= now:
                    # Sets the server aside again, so that only this request tries it.
                    self._set_aside[url] = _Cooldown(now + self._cooldown_s, server.reason)
                    return url
            if len(self._set_aside) < len(self.urls):
                untried = [url for url in untried if url not in self._set_aside]
            if not tried:
                self._position += 1
            return untried[self._position % len(untried)] if untried else None

    def available_first(self) -> list[str]:
        """All servers; those that are set aside come last."""
        with self._lock:
            return sorted(self.urls, key=lambda url: url in self._set_aside)

    def answered(self, url: str) -> None:
        """Ends the setting aside of a server that answered."""
        with self._lock:
            self._set_aside.pop(url, None)

    def failed(self, url: str, reason: str) -> None:
        """Sets a server aside."""
        with self._lock:
            self._set_aside[url] = _Cooldown(monotonic() + self._cooldown_s, reason)

    def reasons(self) -> dict[str, str]:
        """Why servers are set aside, by URL."""
        with self._lock:
            return {url: server.reason for url, server in self._set_aside.items()}


def base_urls(urls: str | Sequence[str]) -> tuple[str, ...]:
    """The base URLs in a comma-separated string or a list, without trailing slashes."""
    parts = urls.split(",") if isinstance(urls, str) else urls
    found = tuple(url.strip().rstrip("/") for url in parts)
    if not found:
        raise ValueError("The list of server URLs is empty; expected at least one.")
    for i, url in enumerate(found):
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r} is not a server's URL; it must begin with http:// or https://.")
        if url in found[:i]:
            raise ValueError(f"{url} is given twice.")
    return found
