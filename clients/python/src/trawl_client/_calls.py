"""The parts of a call that both clients share: request, retries and result. Nothing here uses the network."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import httpx

from . import _protocol
from ._errors import TrawlConnectionError, TrawlError
from ._protocol import Json
from ._retry import REPEATABLE, UNREACHABLE, Retry
from ._servers import Servers
from ._types import Readiness

Result = TypeVar("Result")
# A response, or the error of a request without a response.
Outcome: TypeAlias = httpx.Response | httpx.TransportError


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, and the function that reads the JSON of the response. A request without a body is a GET."""

    path: str
    read: Callable[[Json], Result]
    body: Json | None = None

    def request(self, url: str) -> dict[str, Any]:
        """The arguments of httpx's ``request`` for the server at ``url``."""
        if self.body is None:
            return {"method": "GET", "url": url + self.path}
        # Escaped as ASCII, unlike httpx's own ``json``: a lone surrogate, which a model may write, has no UTF-8.
        content = json.dumps(self.body, allow_nan=False, default=_protocol.plain).encode("ascii")
        headers = {"content-type": "application/json"}
        return {"method": "POST", "url": url + self.path, "content": content, "headers": headers}

    def result(self, response: httpx.Response, url: str) -> Result:
        """The call's result, or its error."""
        _protocol.raise_for_error(response, url)
        body = _protocol.json_object(response)
        try:
            return self.read(body)
        except (KeyError, TypeError, AttributeError) as error:
            raise TrawlError(
                f"The response of {response.url} is not that of a Trawl server: {type(error).__name__} {error}"
            ) from error


class Tries(Generic[Result]):
    """The tries of one call. A round tries each server once, except those that are set aside; then the call waits."""

    def __init__(self, call: Call[Result], servers: Servers, retry: Retry) -> None:
        self._call = call
        self._servers = servers
        self._retry = retry
        self._rounds = 0
        self._next: str | None = None
        self._outcomes: dict[str, Outcome] = {}

    def next_url(self) -> str:
        """The server of the next try."""
        url = self._next
        if url is None:
            url = self._servers.next()
            self._outcomes = {}
        # The first try of a round always has a server.
        assert url is not None
        return url

    def wait_s(self, url: str, outcome: Outcome) -> float | None:
        """Seconds until the next try, or None after the last one. Call it once with each outcome."""
        self._outcomes[url] = outcome
        note_outcome(self._servers, url, outcome)
        if not _repeatable(outcome):
            self._outcomes = {url: outcome}
            return None
        self._next = self._servers.next(self._outcomes)
        if self._next is not None:
            return 0.0
        self._rounds += 1
        if self._rounds == self._retry.attempts:
            return None
        answers = [each for each in self._outcomes.values() if isinstance(each, httpx.Response)]
        headers = [each.headers.get("retry-after") for each in answers if "retry-after" in each.headers]
        return min(self._retry.wait_s(self._rounds - 1, retry_after) for retry_after in headers or [None])

    def result(self) -> Result:
        """The call's result, or its error. A server's response takes precedence over failed connections."""
        for url, outcome in self._outcomes.items():
            if isinstance(outcome, httpx.Response):
                return self._call.result(outcome, url)
        raise no_answer(self._servers, self._outcomes)


class ReadyCheck:
    """Checks one server after the other until one is ready."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._outcomes: dict[str, Outcome] = {}
        self.urls = servers.available_first()

    def is_ready(self, url: str, outcome: Outcome) -> bool:
        """Whether the server with this outcome is ready."""
        self._outcomes[url] = outcome
        note_outcome(self._servers, url, outcome)
        return isinstance(outcome, httpx.Response) and outcome.status_code == 200

    def result(self) -> Readiness:
        """The last response, which is that of the ready server if one is ready."""
        for url, outcome in reversed(self._outcomes.items()):
            if isinstance(outcome, httpx.Response):
                return _protocol.readiness(outcome, url)
        raise no_answer(self._servers, self._outcomes)


def note_outcome(servers: Servers, url: str, outcome: Outcome) -> None:
    """Sets a server aside that is unreachable, too slow or not ready; ends this for a server that answers.

    A lost connection changes nothing, because the server may only have closed an idle connection.
    """
    if isinstance(outcome, httpx.Response):
        reason = _protocol.not_ready(outcome)
        if reason is None:
            servers.answered(url)
        else:
            servers.failed(url, reason)
    elif isinstance(outcome, UNREACHABLE):
        servers.failed(url, _reason(outcome))


def no_answer(servers: Servers, outcomes: dict[str, Outcome]) -> TrawlConnectionError:
    """The error of a call that no server answered, with the reason of each server."""
    errors = {url: outcome for url, outcome in outcomes.items() if isinstance(outcome, httpx.TransportError)}
    (url, last) = list(errors.items())[-1]
    if len(servers.urls) == 1 or (len(errors) == 1 and not isinstance(last, REPEATABLE)):
        message = f"No answer from {url}: {_reason(last)}"
    else:
        reasons = {other: f"{reason} (set aside)" for other, reason in servers.reasons().items()}
        reasons |= {tried: _reason(error) for tried, error in errors.items()}
        message = "No answer from any server. " + "; ".join(f"{each}: {reason}" for each, reason in reasons.items())
    error = TrawlConnectionError(message, url)
    error.__cause__ = last
    return error


def _reason(error: httpx.TransportError) -> str:
    return f"{type(error).__name__} {error}".rstrip()


def _repeatable(outcome: Outcome) -> bool:
    return outcome.status_code == 503 if isinstance(outcome, httpx.Response) else isinstance(outcome, REPEATABLE)
