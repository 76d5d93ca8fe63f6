"""What both clients share of a call: what is sent, what is repeated, how it ends. Nothing here touches the network."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import httpx

from . import _protocol
from ._errors import TrawlConnectionError, TrawlError
from ._protocol import Json
from ._retry import REPEATABLE, Retry

Result = TypeVar("Result")
# An answer, or why there is none.
Outcome: TypeAlias = httpx.Response | httpx.TransportError


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, and what is made of the reply's JSON. Without a body it is a GET."""

    path: str
    read: Callable[[Json], Result]
    body: Json | None = None

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of httpx's ``request``."""
        if self.body is None:
            return {"method": "GET", "url": self.path}
        # In ASCII, unlike httpx's own ``json``: half a surrogate pair, which a model may write, has no UTF-8.
        content = json.dumps(self.body, allow_nan=False).encode("ascii")
        return {"method": "POST", "url": self.path, "content": content, "headers": {"content-type": "application/json"}}

    def result(self, outcome: Outcome) -> Result:
        """What the call gives, or its error."""
        if isinstance(outcome, httpx.TransportError):
            raise no_answer(outcome) from outcome
        _protocol.raise_for_error(outcome)
        body = _protocol.json_object(outcome)
        try:
            return self.read(body)
        except (KeyError, TypeError, AttributeError) as error:
            raise TrawlError(
                f"{outcome.url} answers in a form that is not a Trawl server's: {type(error).__name__} {error}"
            ) from error


class Tries:
    """The tries of one call."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._made = 0

    def wait_s(self, outcome: Outcome) -> float | None:
        """Seconds until the next try; None where the outcome stands."""
        attempt = self._made
        self._made += 1
        if self._made == self._retry.attempts:
            return None
        if isinstance(outcome, httpx.TransportError):
            return self._retry.wait_s(attempt, None) if isinstance(outcome, REPEATABLE) else None
        if outcome.status_code != 503:
            return None
        return self._retry.wait_s(attempt, outcome.headers.get("retry-after"))


def no_answer(error: httpx.TransportError) -> TrawlConnectionError:
    """What a request without an answer raises."""
    return TrawlConnectionError(f"No answer from {error.request.url}: {type(error).__name__} {error}".rstrip())


def http_options(url: str, api_key: str | None, timeout_s: float | None, max_connections: int) -> dict[str, Any]:
    """The arguments of httpx's clients."""
    return {
        "base_url": url.rstrip("/"),
        "headers": _protocol.headers(api_key),
        "timeout": httpx.Timeout(timeout_s, connect=10.0, pool=None),
        "limits": httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_connections),
    }
