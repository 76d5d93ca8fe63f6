"""Which calls are repeated, and after what wait."""

from __future__ import annotations

import inspect
import socket
import time
import unittest
from email.utils import formatdate

from tests.scripted_server import HANG_UP, Answer, ScriptedServer
from trawl_client import (
    AsyncTrawlClient,
    Retry,
    TrawlClient,
    TrawlConnectionError,
    TrawlError,
    TrawlQueryError,
    TrawlResponseError,
)

INDEXES: Answer = (200, {}, {"indexes": []})
SHORT = Retry(attempts=4, first_wait_s=0.001)


def refusal(status: int, code: str, retry_after: str | None = None) -> Answer:
    headers = {"x-request-id": "r-1"} | ({} if retry_after is None else {"retry-after": retry_after})
    return status, headers, {"detail": "…", "error": {"code": code, "message": "Not now."}}


class TestRetry(unittest.IsolatedAsyncioTestCase):
    """Both clients against scripted answers."""

    async def both(self, answers: list[Answer], retry: Retry, requests: int, error: type[Exception] | None) -> None:
        with ScriptedServer(*answers) as server, TrawlClient(server.url, retry=retry) as client:
            if error is None:
                self.assertEqual(client.indexes(), [])
            else:
                with self.assertRaises(error):
                    client.indexes()
            self.assertEqual(len(server.requests), requests)
        with ScriptedServer(*answers) as server:
            async with AsyncTrawlClient(server.url, retry=retry) as client_async:
                if error is None:
                    self.assertEqual(await client_async.indexes(), [])
                else:
                    with self.assertRaises(error):
                        await client_async.indexes()
            self.assertEqual(len(server.requests), requests)

    async def test_a_503_is_repeated_until_an_answer_comes(self) -> None:
        await self.both([refusal(503, "NOT_READY"), refusal(503, "OVERLOADED", "0"), INDEXES], SHORT, 3, None)

    async def test_the_last_503_is_raised(self) -> None:
        await self.both([refusal(503, "OVERLOADED", "0")], SHORT, 4, TrawlResponseError)

    async def test_a_lost_connection_is_repeated(self) -> None:
        await self.both([HANG_UP, HANG_UP, INDEXES], SHORT, 3, None)
        await self.both([HANG_UP], SHORT, 4, TrawlConnectionError)

    async def test_other_refusals_are_not_repeated(self) -> None:
        for status in (400, 404, 422, 429, 500, 501):
            await self.both([refusal(status, "INVALID_REQUEST")], SHORT, 1, TrawlResponseError)

    async def test_it_waits_as_long_as_retry_after_says(self) -> None:
        with (
            ScriptedServer(refusal(503, "NOT_READY", "1"), INDEXES) as server,
            TrawlClient(server.url, retry=SHORT) as client,
        ):
            start = time.monotonic()
            client.indexes()
            self.assertGreaterEqual(time.monotonic() - start, 1.0)

    def test_waits_follow_retry_after_or_grow_up_to_the_maximum(self) -> None:
        retry = Retry(first_wait_s=0.5, max_wait_s=4)
        self.assertEqual(retry.wait_s(0, "3"), 3)
        self.assertEqual(retry.wait_s(0, "600"), 4)
        self.assertEqual(retry.wait_s(5, "0"), 0)
        self.assertEqual(retry.wait_s(0, formatdate(time.time() - 60, usegmt=True)), 0)
        self.assertAlmostEqual(retry.wait_s(0, formatdate(time.time() + 2, usegmt=True)), 2, delta=1.1)
        for strange in ("soon", "-1", "", "²", "1e3"):
            self.assertLessEqual(retry.wait_s(0, strange), 0.5)
        for attempt, longest in enumerate((0.5, 1, 2, 4, 4)):
            wait = retry.wait_s(attempt, None)
            self.assertTrue(longest / 2 <= wait <= longest, wait)
        self.assertLessEqual(retry.wait_s(100_000, None), 4)

    def test_invalid_settings_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "attempts is 0"):
            Retry(attempts=0)
        for name in ("first_wait_s", "max_wait_s", "cooldown_s"):
            with self.assertRaisesRegex(ValueError, f"{name} is -1"):
                Retry(**{name: -1})

    def test_a_read_that_timed_out_is_not_repeated(self) -> None:
        # Accepts connections and never answers.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            with (
                TrawlClient(f"http://127.0.0.1:{port}", timeout_s=0.1, retry=SHORT) as client,
                self.assertRaisesRegex(TrawlConnectionError, "ReadTimeout"),
            ):
                client.indexes()

    def test_a_reply_that_is_not_a_trawl_servers_raises_an_error(self) -> None:
        strange: tuple[tuple[Answer, str], ...] = (
            ((200, {}, b"<html>"), "not JSON"),
            ((200, {}, [1]), "JSON list"),
            ((200, {}, {"ok": 1}), "not that of a Trawl server"),
        )
        for answer, text in strange:
            with (
                ScriptedServer(answer) as server,
                TrawlClient(server.url) as client,
                self.assertRaisesRegex(TrawlError, text),
            ):
                client.indexes()
        with (
            ScriptedServer((502, {}, b"<html>")) as server,
            TrawlClient(server.url) as client,
            self.assertRaises(TrawlResponseError) as raised,
        ):
            client.indexes()
        self.assertEqual((raised.exception.status, raised.exception.code), (502, "UNKNOWN"))

    def test_the_api_key_and_large_ids_are_sent_exactly(self) -> None:
        body = {
            "index": {"name": "i", "generation": "g"},
            "results": [{"ok": False, "error": {"code": "ENCODING_FAILED", "message": "No."}}],
            "timings": {"embedMs": 1, "searchMs": 2, "fetchMs": 3, "rerankMs": 0},
            "mode": "dense",
        }
        with ScriptedServer((200, {}, body)) as server, TrawlClient(server.url + "/", api_key="k-1") as client:
            response = client.search([{"query": "q", "question": None}], exclude=[3, 2**53 + 1, "s"])
        ((method, path, headers, sent),) = server.requests
        self.assertEqual((method, path), ("POST", "/v1/search"))
        self.assertEqual(headers["authorization"], "Bearer k-1")
        self.assertEqual(sent, {"queries": [{"query": "q", "question": None}], "exclude": [3, "9007199254740993", "s"]})
        self.assertFalse(response.results[0].ok)
        with self.assertRaises(TrawlQueryError) as raised:
            response.raise_for_errors()
        self.assertEqual(raised.exception.code, "ENCODING_FAILED")

    def test_it_waits_for_a_server_that_starts(self) -> None:
        starting: Answer = (503, {"retry-after": "2"}, {"status": "starting", "progress": "mapping"})
        ready: Answer = (200, {}, {"status": "ready", "rows": 3})
        with ScriptedServer(starting, starting, ready) as server, TrawlClient(server.url) as client:
            self.assertEqual(client.wait_until_ready(5, poll_s=0.01).facts["rows"], 3)
        with (
            ScriptedServer(starting) as server,
            TrawlClient(server.url) as client,
            self.assertRaisesRegex(TrawlConnectionError, "mapping"),
        ):
            client.wait_until_ready(0.05, poll_s=0.01)


class TestBothClients(unittest.TestCase):
    """The two clients have one interface."""

    def test_both_have_the_same_methods_with_the_same_parameters(self) -> None:
        def methods(client: type) -> dict[str, str]:
            functions = inspect.getmembers(client, inspect.isfunction)
            public = {name: str(inspect.signature(each)) for name, each in functions if not name.startswith("_")}
            return {"close" if name == "aclose" else name: signature for name, signature in public.items()}

        self.assertEqual(methods(TrawlClient), methods(AsyncTrawlClient))
        self.assertIn("search", methods(TrawlClient))


if __name__ == "__main__":
    unittest.main()
