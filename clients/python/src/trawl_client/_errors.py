"""The errors of this package."""

from __future__ import annotations


class TrawlError(Exception):
    """Base class of this package's errors."""


class TrawlConnectionError(TrawlError):
    """No server answered: unreachable, disconnected, or slower than the time-out.

    ``url`` is the server that was tried last. The message has the reason of each server.
    """

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class TrawlResponseError(TrawlError):
    """The server refused the request. ``code`` is stable, the message may change (docs/errors.md of the server).

    ``url`` is the server that answered; ``request_id`` is the request's id in its log.
    """

    def __init__(self, status: int, code: str, message: str, request_id: str | None = None, url: str = "") -> None:
        super().__init__(f"{message} [{code}, status {status}{url and f', {url}'}]")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        self.url = url


class TrawlQueryError(TrawlError):
    """One query of a call failed; the others may have succeeded."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.message = message
