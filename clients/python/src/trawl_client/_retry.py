"""When a call is made again."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

# Nothing of the request was worked on, or its answer was lost; all requests of this package are reads and can be
# repeated. A read time-out is not among them: the server may still be at work, and would be asked to do it twice.
REPEATABLE = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ReadError,
    httpx.WriteError,
    httpx.RemoteProtocolError,
)


@dataclass(frozen=True)
class Retry:
    """Repeats after 503 and after lost connections.

    A 503's ``Retry-After`` is waited for, at most ``max_wait_s`` seconds. Without it the n-th wait is up to
    ``first_wait_s`` times 2^n seconds, shortened at random so that many clients do not come back at once.
    """

    attempts: int = 10
    first_wait_s: float = 0.25
    max_wait_s: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; it must be at least 1, which means no repetition.")
        if self.first_wait_s < 0 or self.max_wait_s < 0:
            raise ValueError("first_wait_s and max_wait_s must not be negative.")

    def wait_s(self, attempt: int, retry_after: str | None) -> float:
        """Seconds to wait after the attempt of that number, counted from 0."""
        asked = _seconds(retry_after)
        if asked is not None:
            return min(asked, self.max_wait_s)
        return min(self.first_wait_s * 2.0 ** min(attempt, 60), self.max_wait_s) * (0.5 + random.random() / 2)


def _seconds(retry_after: str | None) -> float | None:
    """Seconds or a date, as HTTP has them (RFC 9110, section 10.2.3)."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isdecimal() and text.isascii():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
