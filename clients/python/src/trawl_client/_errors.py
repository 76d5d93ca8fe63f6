"""The one family of errors."""

from __future__ import annotations


class TrawlError(Exception):
    """Anything that a call of this package raises on its own account."""


class TrawlConnectionError(TrawlError):
    """No answer: the server cannot be reached, or took longer than the time-out."""


class TrawlResponseError(TrawlError):
    """An answer that is an error; ``code`` is stable, the message may change (docs/errors.md of the server)."""

    def __init__(self, status: int, code: str, message: str, request_id: str | None = None) -> None:
        super().__init__(f"{message} [{code}, status {status}]")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id


class TrawlQueryError(TrawlError):
    """One query of a call failed while others did not."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.message = message
