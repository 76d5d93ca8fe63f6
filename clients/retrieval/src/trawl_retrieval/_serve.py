"""A server for the time of a `with` block."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from ._client import TrawlClient
from ._program import CommandError, program


@dataclass(frozen=True)
class Server:
    """A running server: its base URL, and a client that is closed with it."""

    url: str
    client: TrawlClient
    pid: int


@contextmanager
def serve(
    *indexes: str | os.PathLike[str],
    port: int = 0,
    options: Sequence[str] = (),
    start_timeout_s: float = 600.0,
) -> Iterator[Server]:
    """Serves indexes until the end of the ``with`` block.

    ``port`` 0 takes a free one. ``options`` are further options of ``trawl serve``, such as ``["--mode", "bm25"]``.
    The block begins when the server answers searches. Raises ``CommandError`` with the program's message if it does not
    start, ``TimeoutError`` if it is not ready after ``start_timeout_s``. The server is stopped at the end of the block,
    also after an exception: Ctrl-C lets its running requests end, for up to a minute, and a second Ctrl-C ends it at
    once. If this process is killed, the server goes on.

    >>> with serve("indexes/mine") as server:
    ...     server.client.search(["designer of the Brooklyn Bridge"], k=3)
    """
    words = ["serve", *(os.fspath(index) for index in indexes), "--port", str(port), *options, "--json"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        # In a session of its own: Ctrl-C in the terminal reaches this process alone, which then stops the server. From
        # a second signal, the server would end at once.
        child = subprocess.Popen(
            [*program(), *words], stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        try:
            url = _url(child, words, log, start_timeout_s)
            with TrawlClient(url) as client:
                yield Server(url, client, child.pid)
        finally:
            _stop(child)


def _url(child: subprocess.Popen[str], words: Sequence[str], log: IO[str], timeout_s: float) -> str:
    """Waits for the line that says that the server is ready."""
    late = threading.Event()

    def end() -> None:
        late.set()
        child.kill()

    limit = threading.Timer(timeout_s, end)
    limit.start()
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
    finally:
        limit.cancel()
    if late.is_set():
        raise TimeoutError(f"trawl {' '.join(words)} was not ready after {timeout_s} s.")
    if line == "":
        code = child.wait()
        log.seek(0)
        raise CommandError(words, code, log.read())
    return str(json.loads(line)["url"])


def _stop(child: subprocess.Popen[str]) -> None:
    """Lets running requests end, as Ctrl-C does. Kills the server after a minute, or at once if interrupted."""
    try:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(60)
    except BaseException as error:
        child.kill()
        child.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
    finally:
        if child.stdout is not None:
            child.stdout.close()
