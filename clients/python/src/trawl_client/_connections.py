"""The settings of a client, and its connections. No two processes and no two event loops share a connection."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx

from . import _protocol
from ._retry import Retry
from ._servers import Servers

Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)

# Connections of the parent process in a forked one. They are kept because closing them could send bytes to the server.
_inherited: list[object] = []


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a client: what a pickled client consists of."""

    url: tuple[str, ...]
    api_key: str | None
    timeout_s: float | None
    retry: Retry
    max_connections: int
    verify: Any


class _Process(Generic[Http]):
    """The servers as this process has found them, and one pool of connections for each event loop (None: no loop)."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.servers = Servers(settings.url, settings.retry.cooldown_s)
        self.pools: dict[asyncio.AbstractEventLoop | None, Http] = {}


class Connections(Generic[Http]):
    """The connections of one client. Thread-safe.

    A forked process has its parent's sockets: if it used them, each process would read answers to the other's
    requests. An event loop cannot use another loop's sockets. So each process and each event loop opens its own.
    """

    def __init__(self, settings: Settings, http: type[Http]) -> None:
        self._settings = settings
        self._http: type[Http] = http
        # Made here, so that wrong certificates are an error of the constructor, and no event loop waits for it.
        self._tls = httpx.create_ssl_context(verify=settings.verify)
        self._process: _Process[Http] = _Process(settings)
        self._closed = False

    @property
    def servers(self) -> Servers:
        """The servers as this process has found them."""
        return self._here().servers

    def pool(self) -> Http:
        """The pool of connections of this process and of the running event loop."""
        process, loop = self._here(), self._loop()
        with process.lock:
            if self._closed:
                raise RuntimeError("The client has been closed. Make a new one.")
            pool = process.pools.get(loop)
            if pool is None:
                for other in [each for each in process.pools if each is not None and each.is_closed()]:
                    del process.pools[other]
                pool = process.pools[loop] = self._open()
            return pool

    def close(self) -> Http | None:
        """Refuses further calls. Returns the open pool of this process and loop, which the caller closes."""
        process = self._here()
        with process.lock:
            self._closed = True
            own = process.pools.pop(self._loop(), None)
            others, process.pools = process.pools, {}
        for loop, pool in others.items():
            if isinstance(pool, httpx.AsyncClient) and loop is not None and loop.is_running():
                asyncio.run_coroutine_threadsafe(pool.aclose(), loop)
        return own

    def _open(self) -> Http:
        most = self._settings.max_connections
        return self._http(
            verify=self._tls,
            headers=_protocol.headers(self._settings.api_key),
            timeout=httpx.Timeout(self._settings.timeout_s, connect=10.0, pool=None),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
        )

    def _here(self) -> _Process[Http]:
        process = self._process
        # Without the lock, which another thread of the parent may have held at the fork.
        if process.pid != os.getpid():
            _inherited.append(process)
            process = self._process = _Process(self._settings)
        return process

    def _loop(self) -> asyncio.AbstractEventLoop | None:
        return asyncio.get_running_loop() if issubclass(self._http, httpx.AsyncClient) else None
