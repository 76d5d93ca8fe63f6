"""Clients in several processes, threads and event loops, and values of other libraries as arguments."""

from __future__ import annotations

import asyncio
import copy
import importlib
import multiprocessing
import pickle
import threading
import unittest
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any, cast

from tests.echo_server import EchoServer
from tests.scripted_server import Answer, ScriptedServer
from trawl_client import (
    AsyncTrawlClient,
    FlashRAGRetriever,
    Retry,
    TrawlClient,
    TrawlConnectionError,
    TrawlQueryError,
    TrawlResponseError,
)

IDS = range(30)
NO_RESULTS: Answer = (
    200,
    {},
    {
        "index": {"name": "x", "generation": "g"},
        "results": [],
        "timings": {"embedMs": 0, "searchMs": 0, "fetchMs": 0, "rerankMs": 0},
        "mode": "dense",
        "passages": [],
    },
)


def wrong_answers(client: TrawlClient, worker: int) -> int:
    """How many answers belong to another request."""
    ids = [f"{worker}-{number}" for number in IDS]
    return sum(client.passage(each).document["id"] != each for each in ids)


async def wrong_answers_async(client: AsyncTrawlClient, worker: int) -> int:
    ids = [f"{worker}-{number}" for number in IDS]
    passages = await asyncio.gather(*(client.passage(each) for each in ids))
    return sum(passage.document["id"] != each for passage, each in zip(passages, ids, strict=True))


def run_async(client: AsyncTrawlClient, worker: int) -> int:
    return asyncio.run(wrong_answers_async(client, worker))


def raise_error() -> None:
    raise TrawlResponseError(400, "INVALID_REQUEST", "No.", "r-1", "http://x")


def count_in_child(client: Any, worker: int, barrier: Any, queue: Any) -> None:
    barrier.wait()
    try:
        queue.put(run_async(client, worker) if isinstance(client, AsyncTrawlClient) else wrong_answers(client, worker))
    except BaseException as error:
        queue.put(repr(error))


class TestProcesses(unittest.TestCase):
    def in_children(self, context: BaseContext, client: Any) -> list[Any]:
        barrier, queue = context.Barrier(6), context.Queue()
        children = [
            context.Process(target=count_in_child, args=(client, worker, barrier, queue), daemon=True)  # type: ignore[attr-defined]
            for worker in range(6)
        ]
        for child in children:
            child.start()
        try:
            return [queue.get(timeout=60) for _ in children]
        finally:
            for child in children:
                child.terminate()
                child.join()

    @unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "this system has no fork")
    def test_forked_processes_read_only_answers_to_their_own_requests(self) -> None:
        with EchoServer() as url, TrawlClient(url) as client:
            for _ in range(2):
                self.assertEqual(wrong_answers(client, 9), 0)
                self.assertEqual(self.in_children(multiprocessing.get_context("fork"), client), [0] * 6)
            self.assertEqual(wrong_answers(client, 9), 0)

    @unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "this system has no fork")
    def test_forked_processes_use_an_async_client_in_loops_of_their_own(self) -> None:
        with EchoServer() as url:
            client = AsyncTrawlClient(url)
            self.assertEqual(run_async(client, 9), 0)
            self.assertEqual(self.in_children(multiprocessing.get_context("fork"), client), [0] * 6)
            self.assertEqual(run_async(client, 9), 0)

    @unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "this system has no fork")
    def test_a_fork_while_other_threads_call_does_not_wait_for_their_locks(self) -> None:
        with EchoServer() as url, TrawlClient([url, url.replace("127.0.0.1", "localhost")]) as client:
            stop = threading.Event()

            def call() -> None:
                while not stop.is_set():
                    client.passage("a")

            threads = [threading.Thread(target=call) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for _ in range(2):
                    self.assertEqual(self.in_children(multiprocessing.get_context("fork"), client), [0] * 6)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()

    def test_clients_are_sent_to_spawned_processes(self) -> None:
        context = multiprocessing.get_context("spawn")
        with EchoServer() as url:
            for client in (TrawlClient(url), AsyncTrawlClient(url)):
                self.assertEqual(self.in_children(context, client), [0] * 6)

    def test_errors_cross_the_border_of_a_process(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn) as pool, self.assertRaises(TrawlResponseError) as caught:
            pool.submit(raise_error).result()
        self.assertEqual((caught.exception.status, caught.exception.request_id), (400, "r-1"))
        for error in (TrawlConnectionError("gone", "http://x"), TrawlQueryError("C", "m")):
            copied = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(copied), vars(copied)), (str(error), vars(error)))

    def test_copies_have_the_settings_and_connections_of_their_own(self) -> None:
        with ScriptedServer((200, {}, {"indexes": []})) as server:
            retry = Retry(attempts=3)
            client = TrawlClient([server.url], api_key="k", timeout_s=7, retry=retry)
            client.indexes()
            client.close()
            for copied in (copy.copy(client), copy.deepcopy(client), pickle.loads(pickle.dumps(client))):
                self.assertEqual(copied.indexes(), [])
                self.assertEqual(server.requests[-1][2]["authorization"], "Bearer k")
            retriever = pickle.loads(pickle.dumps(FlashRAGRetriever(client, topk=3)))
            self.assertEqual((retriever.topk, retriever.client.indexes()), (3, []))
            with self.assertRaisesRegex(RuntimeError, "has been closed"):
                client.indexes()


class TestLoops(unittest.TestCase):
    def test_one_async_client_serves_one_event_loop_after_the_other(self) -> None:
        with EchoServer() as url:
            client = AsyncTrawlClient(url)
            for worker in range(4):
                self.assertEqual(run_async(client, worker), 0)

    def test_one_async_client_serves_event_loops_in_several_threads(self) -> None:
        with EchoServer() as url:
            client = AsyncTrawlClient(url)
            results: list[int] = []
            threads = [
                threading.Thread(target=lambda worker=worker: results.append(run_async(client, worker)))
                for worker in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(results, [0] * 4)

    def test_closing_a_client_closes_its_connections_in_every_loop(self) -> None:
        with EchoServer() as url:
            client = AsyncTrawlClient(url)
            used, closed = threading.Event(), threading.Event()
            errors: list[str] = []

            async def use_then_wait() -> None:
                await client.passage("a")
                pool = client._connections.pool()
                used.set()
                while not closed.is_set() or not pool.is_closed:
                    await asyncio.sleep(0.01)
                try:
                    await client.passage("b")
                except RuntimeError as error:
                    errors.append(str(error))

            other = threading.Thread(target=lambda: asyncio.run(use_then_wait()), daemon=True)
            other.start()
            self.assertTrue(used.wait(timeout=30))
            asyncio.run(client.aclose())
            closed.set()
            other.join(timeout=30)
            self.assertEqual(errors, ["The client has been closed. Make a new one."])

    def test_a_wrong_certificate_file_is_an_error_of_the_constructor(self) -> None:
        for make in (TrawlClient, AsyncTrawlClient):
            with self.assertRaises(OSError):
                make("https://127.0.0.1:9", verify="/nowhere/ca.pem")


class TestValues(unittest.TestCase):
    """Values of numpy and pandas, which their users do not see as different from Python's."""

    def test_numbers_and_arrays_of_numpy_and_pandas_are_arguments(self) -> None:
        try:
            numpy, pandas = importlib.import_module("numpy"), importlib.import_module("pandas")
        except ImportError:
            self.skipTest("numpy and pandas are not installed")
        with ScriptedServer(NO_RESULTS) as server, TrawlClient(server.url) as client:
            client.search(
                pandas.Series(["a", "b"]),
                k=numpy.int64(2),
                min_score=numpy.float32(0.5),
                exclude=numpy.array([3, 2**60]),
                explain=numpy.bool_(True),
                filter={"year": numpy.array([2020, 2021])},
            )
            body = server.requests[-1][3]
            self.assertEqual(body["queries"], ["a", "b"])
            self.assertEqual((body["k"], body["minScore"], body["explain"]), (2, 0.5, True))
            self.assertEqual(body["exclude"], [3, str(2**60)])
            self.assertEqual(body["filter"], {"year": [2020, 2021]})
            client.passages(pandas.Index(["x"]), rows=numpy.arange(2))
            self.assertEqual(server.requests[-1][3]["rows"], [0, 1])

    def test_scalars_and_arrays_of_any_library_are_arguments(self) -> None:
        class Scalar:
            def tolist(self) -> int:
                return 7

        with ScriptedServer(NO_RESULTS) as server, TrawlClient(server.url) as client:
            client.search(["a"], k=cast(Any, Scalar()))
            self.assertEqual(server.requests[-1][3]["k"], 7)

    def test_a_value_without_a_json_form_is_named(self) -> None:
        with TrawlClient("http://127.0.0.1:9") as client:
            with self.assertRaisesRegex(TypeError, "object at .* has no JSON form"):
                client.search(["a"], k=cast(Any, object()))
            for bad in (3.5, True, None):
                with self.assertRaisesRegex(TypeError, "An id is a text or an integer"):
                    client.search(["a"], exclude=[cast(Any, bad)])
