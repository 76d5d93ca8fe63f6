"""The errors of this package."""

from __future__ import annotations

from typing import Any


class TrawlError(Exception):
    """Base class of this package's errors. They can be pickled, and so cross the border of a process."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Restores the error without calling its constructor, whose arguments differ from ``args``."""
        return _restored, (type(self), self.args, self.__dict__)


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


def _restored(kind: type[TrawlError], args: tuple[Any, ...], fields: dict[str, Any]) -> TrawlError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
