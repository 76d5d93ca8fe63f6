"""Several servers: round robin, set aside on failure, tried again later."""

from __future__ import annotations

import asyncio
import socket
import time
import unittest
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from unittest import mock

from tests.scripted_server import HANG_UP, Answer, ScriptedServer
from trawl_client import (
    AsyncTrawlClient,
    FlashRAGRetriever,
    Retry,
    TrawlClient,
    TrawlConnectionError,
    TrawlResponseError,
)

INDEXES: Answer = (200, {}, {"indexes": []})
NOT_READY: Answer = (503, {"retry-after": "30"}, {"error": {"code": "NOT_READY", "message": "Starting."}})
OVERLOADED: Answer = (503, {"retry-after": "0"}, {"error": {"code": "OVERLOADED", "message": "Full."}})
# No test reaches the end of the cool-down but by ``after``.
RETRY = Retry(attempts=3, first_wait_s=0.001, cooldown_s=60)


def after(seconds: float) -> AbstractContextManager[object]:
    """Lets the cool-down's clock be that much later."""
    return mock.patch("trawl_client._servers.monotonic", lambda: time.monotonic() + seconds)


class TestServers(unittest.TestCase):
    """The client for threads, against servers on real sockets."""

    def servers(self, *answers: Answer) -> list[ScriptedServer]:
        servers = [ScriptedServer(answer) for answer in answers]
        for server in servers:
            server.start()
            self.addCleanup(server.stop)
        return servers

    def client(self, urls: str | list[str], retry: Retry = RETRY, timeout_s: float = 120) -> TrawlClient:
        client = TrawlClient(urls, retry=retry, timeout_s=timeout_s)
        self.addCleanup(client.close)
        return client

    def test_calls_of_many_threads_are_spread_evenly(self) -> None:
        servers = self.servers(INDEXES, INDEXES, INDEXES)
        client = self.client(",".join(server.url for server in servers))
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: client.indexes(), range(60)))
        self.assertEqual([len(server.requests) for server in servers], [20, 20, 20])

    def test_a_server_that_dies_in_the_middle_is_set_aside_and_taken_back(self) -> None:
        first, second = self.servers(INDEXES, INDEXES)
        client = self.client([first.url, second.url])
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda i: first.stop() if i == 10 else client.indexes(), range(200)))
        while_dead = len(first.requests)
        first.start()
        client.indexes()
        self.assertEqual(len(first.requests), while_dead)
        with after(RETRY.cooldown_s):
            for _ in range(20):
                client.indexes()
        self.assertGreaterEqual(len(first.requests) - while_dead, 10)

    def test_after_the_cool_down_one_request_tries_the_server(self) -> None:
        dead, live = self.servers(INDEXES, INDEXES)
        client = self.client([dead.url, live.url])
        dead.stop()
        for _ in range(2):
            client.indexes()
        dead.open.clear()
        dead.start()
        with after(RETRY.cooldown_s), ThreadPoolExecutor(8) as threads:
            calls = [threads.submit(client.indexes) for _ in range(8)]
            waiting = wait(calls, return_when=FIRST_COMPLETED).not_done
            while len(waiting) > 1:
                waiting = wait(waiting, return_when=FIRST_COMPLETED).not_done
            self.assertEqual((len(dead.requests), len(live.requests)), (1, 9))
            dead.open.set()

    def test_a_time_out_sets_the_server_aside_and_is_not_repeated(self) -> None:
        (live,) = self.servers(INDEXES)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            client = self.client([url, live.url], timeout_s=1)
            errors: list[TrawlConnectionError] = []
            for _ in range(6):
                try:
                    client.indexes()
                except TrawlConnectionError as error:
                    errors.append(error)
        self.assertEqual(len(live.requests), 5)
        ((message, failed),) = [(str(error), error.url) for error in errors]
        self.assertEqual(failed, url)
        self.assertRegex(message, f"No answer from {url}: ReadTimeout")

    def test_a_server_that_is_not_ready_is_set_aside(self) -> None:
        without_upstream: Answer = (503, {}, b"<html>no upstream</html>")
        for not_ready in (NOT_READY, without_upstream):
            starting, live = self.servers(not_ready, INDEXES)
            client = self.client([starting.url, live.url])
            for _ in range(10):
                client.indexes()
            self.assertEqual((len(starting.requests), len(live.requests)), (1, 10))

    def test_an_overloaded_server_is_not_set_aside(self) -> None:
        full, live = self.servers(OVERLOADED, INDEXES)
        client = self.client([full.url, live.url])
        for _ in range(10):
            client.indexes()
        self.assertEqual((len(full.requests), len(live.requests)), (5, 10))

    def test_a_lost_connection_is_repeated_on_another_server(self) -> None:
        lossy, live = self.servers(HANG_UP, INDEXES)
        client = self.client([lossy.url, live.url], Retry(attempts=1, cooldown_s=60))
        for _ in range(10):
            client.indexes()
        self.assertEqual((len(lossy.requests), len(live.requests)), (5, 10))

    def test_a_refusal_names_its_server_and_is_not_repeated_elsewhere(self) -> None:
        answer: Answer = (422, {}, {"error": {"code": "K_TOO_LARGE", "message": "Too many."}})
        servers = self.servers(answer, answer)
        client = self.client([server.url for server in servers])
        with self.assertRaises(TrawlResponseError) as raised:
            client.indexes()
        (asked,) = [server.url for server in servers if len(server.requests) == 1]
        self.assertEqual(raised.exception.url, asked)
        self.assertIn(asked, str(raised.exception))

    def test_when_all_are_dead_the_error_names_each_with_its_reason(self) -> None:
        first, second = self.servers(INDEXES, INDEXES)
        first.stop()
        second.stop()
        client = self.client([first.url, second.url])
        with self.assertRaises(TrawlConnectionError) as raised:
            client.indexes()
        message = str(raised.exception)
        self.assertIn("No answer from any server", message)
        for server in (first, second):
            self.assertRegex(message, f"{server.url}: ConnectError .*refused")
        # All are set aside now; a call tries them nevertheless.
        second.start()
        self.assertEqual(client.indexes(), [])

    def test_a_server_that_answers_is_the_error_rather_than_a_dead_one(self) -> None:
        dead, starting = self.servers(INDEXES, OVERLOADED)
        dead.stop()
        with self.assertRaises(TrawlResponseError) as raised:
            self.client([dead.url, starting.url]).indexes()
        self.assertEqual(raised.exception.code, "OVERLOADED")

    def test_it_waits_until_one_server_is_ready(self) -> None:
        starting: Answer = (503, {}, {"status": "starting", "progress": "mapping"})
        first, second = self.servers(starting, starting)
        second.answers = [starting, starting, (200, {}, {"status": "ready", "rows": 3})]
        client = self.client([first.url, second.url])
        self.assertEqual(client.ready().ready, False)
        self.assertEqual(client.wait_until_ready(5, poll_s=0.01).facts["rows"], 3)
        first.stop()
        second.stop()
        with self.assertRaises(TrawlConnectionError) as raised:
            client.wait_until_ready(0.05, poll_s=0.01)
        for server in (first, second):
            self.assertIn(f"{server.url}: ConnectError", str(raised.exception))

    def test_invalid_urls_are_refused(self) -> None:
        refused: list[tuple[str | list[str], str]] = [
            ("", "must begin with http"),
            ([], "empty"),
            ("http://a:1,,http://b:1", "must begin with http"),
            ("a:8000", "'a:8000' is not a server's URL"),
            ("http://a:1, http://a:1/", "http://a:1 is given twice"),
        ]
        for urls, message in refused:
            with self.subTest(urls), self.assertRaisesRegex(ValueError, message):
                TrawlClient(urls)

    def test_the_flashrag_retriever_takes_several_urls(self) -> None:
        body = {
            "index": {"name": "i", "generation": "g"},
            "results": [],
            "timings": {"embedMs": 1, "searchMs": 2, "fetchMs": 3, "rerankMs": 0},
            "mode": "dense",
        }
        servers = self.servers((200, {}, body), (200, {}, body))
        urls = [server.url for server in servers]
        for retriever in (
            FlashRAGRetriever(urls),
            FlashRAGRetriever.from_config({"remote_retriever_url": ",".join(urls)}),
            FlashRAGRetriever.from_config({"remote_retriever_url": urls}),
        ):
            retriever.batch_search(["a"])
            retriever.batch_search(["a"])
            retriever.client.close()
        self.assertEqual([len(server.requests) for server in servers], [3, 3])


class TestAsyncServers(unittest.IsolatedAsyncioTestCase):
    """The client for asyncio."""

    async def test_calls_are_spread_evenly_around_a_dead_server(self) -> None:
        with ScriptedServer(INDEXES) as first, ScriptedServer(INDEXES) as second, ScriptedServer(INDEXES) as third:
            servers = (first, second, third)
            async with AsyncTrawlClient([server.url for server in servers], retry=RETRY) as client:
                await asyncio.gather(*(client.indexes() for _ in range(30)))
                self.assertEqual([len(server.requests) for server in servers], [10, 10, 10])
                await asyncio.to_thread(first.stop)
                await asyncio.gather(*(client.indexes() for _ in range(30)))
                self.assertEqual(len(first.requests), 10)
                self.assertEqual(len(second.requests) + len(third.requests), 50)
                first.start()
                with after(RETRY.cooldown_s):
                    for _ in range(30):
                        await client.indexes()
                # The first of them besides its share.
                self.assertIn(len(first.requests), (20, 21))

    async def test_when_all_are_dead_the_error_names_each(self) -> None:
        with ScriptedServer(INDEXES) as first, ScriptedServer(INDEXES) as second:
            urls = [first.url, second.url]
        async with AsyncTrawlClient(urls, retry=RETRY) as client:
            with self.assertRaises(TrawlConnectionError) as raised:
                await client.indexes()
            for url in urls:
                self.assertIn(f"{url}: ConnectError", str(raised.exception))
            with self.assertRaisesRegex(TrawlConnectionError, f"{urls[0]}, {urls[1]} is not ready"):
                await client.wait_until_ready(0.02, poll_s=0.01)


if __name__ == "__main__":
    unittest.main()
