"""When a call is repeated."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

# The server did not process the request, or its response was lost. All requests of this package only read, so they can
# be repeated, except after a read time-out, when the server may still be working on the first request.
REPEATABLE = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ReadError,
    httpx.WriteError,
    httpx.RemoteProtocolError,
)
# Failures that set a server aside.
UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadTimeout, httpx.WriteTimeout)


@dataclass(frozen=True)
class Retry:
    """Repeats calls after a 503 or a lost connection.

    A call makes up to ``attempts`` rounds. A round tries each server once, except those that are set aside. Between
    rounds the client waits as long as the server's ``Retry-After`` says, at most ``max_wait_s`` seconds. Without that
    header the n-th wait, from n = 0, is ``first_wait_s`` times 2^n seconds, shortened by up to half at random so that
    many clients do not retry at the same time.

    A server that is unreachable, times out or is not ready is set aside for ``cooldown_s`` seconds.
    """

    attempts: int = 10
    first_wait_s: float = 0.25
    max_wait_s: float = 30.0
    cooldown_s: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; it must be at least 1 (no repetition).")
        for name in ("first_wait_s", "max_wait_s", "cooldown_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative.")

    def wait_s(self, attempt: int, retry_after: str | None) -> float:
        """Seconds to wait after a round; rounds are counted from 0."""
        server_s = _seconds(retry_after)
        if server_s is not None:
            return min(server_s, self.max_wait_s)
        return min(self.first_wait_s * 2.0 ** min(attempt, 60), self.max_wait_s) * (0.5 + random.random() / 2)


def _seconds(retry_after: str | None) -> float | None:
    """Parses ``Retry-After``: seconds or a date (RFC 9110, section 10.2.3)."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isdecimal() and text.isascii():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
