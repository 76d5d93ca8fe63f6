"""A server on a real socket that gives the answers a test lists, the bad ones of a retrieval server among them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], Any]
# In place of an answer: the connection is closed after the request was read.
HANG_UP: Answer = (0, {}, None)


class ScriptedServer:
    """Gives its answers in order, the last one for every further request, and records the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.answers = list(answers)
        # Cleared by a test to hold the answers back.
        self.open = threading.Event()
        self.open.set()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listens, on the same port as before if it was stopped."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Closes the port and every connection, as the end of a process does."""
        if self._server is None:
            return
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
        self._server = None
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                with script._lock:
                    script._connections.add(self.connection)

            def finish(self) -> None:
                with script._lock:
                    script._connections.discard(self.connection)
                super().finish()

            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def _answer(self, body: Any) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, more, reply = script._next((self.command, self.path, headers, body))
                script.open.wait()
                if status == 0:
                    self.close_connection = True
                    return
                # The client may be gone, or the test has stopped the server.
                with contextlib.suppress(ConnectionError):
                    self._send(status, more, reply)

            def _send(self, status: int, more: dict[str, str], reply: Any) -> None:
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **more}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def _next(self, request: tuple[str, str, dict[str, str], Any]) -> Answer:
        with self._lock:
            self.requests.append(request)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def __enter__(self) -> ScriptedServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
