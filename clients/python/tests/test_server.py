"""Against a real Trawl server with the sample index, whose address is in SERVER_URL."""

from __future__ import annotations

import asyncio
import os
import struct
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from trawl_client import (
    AsyncTrawlClient,
    FlashRAGRetriever,
    Query,
    Retry,
    TrawlClient,
    TrawlConnectionError,
    TrawlResponseError,
)

URL = os.environ["SERVER_URL"]
BRIDGE = "who designed the Brooklyn Bridge"
QUESTION = "Where was the designer of the Brooklyn Bridge born?"


class TestClient(unittest.TestCase):
    """The client for threads."""

    def setUp(self) -> None:
        self.client = TrawlClient(URL, retry=Retry(attempts=3))
        self.addCleanup(self.client.close)

    def test_a_search_has_a_result_for_each_query(self) -> None:
        response = self.client.search([BRIDGE, Query("its designer", question=QUESTION)], k=4)
        self.assertEqual(response.index, "sample")
        self.assertEqual([len(result.hits) for result in response], [4, 4])
        self.assertIsNone(response.hits)
        first, second = response.results
        assert first.embedded is not None and second.embedded is not None and first.certificate is not None
        self.assertEqual(first.hits[0].title, "Brooklyn Bridge")
        self.assertTrue(first.hits[0].whole)
        self.assertIsNone(first.hits[0].document)
        scores = [hit.score for hit in first.hits]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(second.embedded.text, f"{QUESTION} [SEP] its designer")
        self.assertEqual(second.embedded.cut, "nothing")
        self.assertTrue(first.certificate.exact)

    def test_half_a_surrogate_pair_is_a_text_like_any_other(self) -> None:
        response = self.client.search([BRIDGE, "\ud83d bridge"], k=2)
        self.assertEqual([len(result.hits) for result in response], [2, 2])
        self.assertEqual([len(hits) for hits in self.client.retrieve(["\ud83d"], topk=1)], [1])

    def test_queries_are_fused_without_what_was_seen(self) -> None:
        seen = self.client.search([BRIDGE], k=1).results[0].hits[0].id
        assert seen is not None
        queries = [BRIDGE, "John A. Roebling"]
        response = self.client.search(queries, k=3, fuse="rrf", exclude=[seen], max_chars=60, documents=True)
        assert response.hits is not None
        self.assertEqual(len(response.hits), 3)
        self.assertNotIn(seen, [hit.id for hit in response.hits])
        for hit in response.hits:
            self.assertLessEqual(len(hit.text), 60)
            assert hit.document is not None
            self.assertEqual(hit.document["id"], hit.id)
            self.assertEqual(hit.score, max(found.score for found in hit.found_by))
        fused = [hit.fused for hit in response.hits]
        self.assertEqual(fused, sorted(fused, reverse=True))

    def test_a_long_question_gives_way_to_its_query(self) -> None:
        query = Query("its length", question="word " * 400)
        cuts = [self.client.search([query], truncate=side).results[0].embedded for side in ("tail", "question")]
        self.assertEqual([cut and cut.cut for cut in cuts], ["tail", "question"])

    def test_scores_below_the_least_are_left_out(self) -> None:
        hits = self.client.search([BRIDGE], k=5).results[0].hits
        fewer = self.client.search([BRIDGE], k=5, min_score=hits[1].score).results[0].hits
        self.assertEqual(fewer, hits[:2])

    def test_search_r1s_request_gives_documents_with_scores(self) -> None:
        plain, composed = (
            self.client.retrieve(["its designer"], topk=2, questions=[QUESTION]),
            self.client.retrieve([f"{QUESTION} [SEP] its designer"], topk=2),
        )
        self.assertEqual(plain, composed)
        self.assertEqual(sorted(plain[0][0]), ["document", "score"])
        self.assertEqual(self.client.retrieve([]), [])

    def test_a_passage_is_found_by_its_id(self) -> None:
        passage = self.client.passage("s-0001")
        self.assertEqual(passage.row, 0)
        self.assertTrue(passage.document["contents"].startswith('"Brooklyn Bridge"\n'))
        with self.assertRaises(TrawlResponseError) as raised:
            self.client.passage("no/such id?")
        self.assertEqual((raised.exception.status, raised.exception.code), (404, "NOT_FOUND"))
        self.assertIn("no/such id?", raised.exception.message)
        self.assertIsNotNone(raised.exception.request_id)

    def test_the_index_tells_its_facts(self) -> None:
        (index,) = self.client.indexes()
        self.assertEqual((index.name, index.rows, index.model.name), ("sample", 270, "token-average-256"))
        readiness = self.client.ready()
        self.assertTrue(readiness.ready)
        self.assertEqual(readiness.facts["rows"], 270)

    def test_a_vector_is_the_one_that_a_search_uses(self) -> None:
        (index,) = self.client.indexes()
        hit = self.client.search([BRIDGE], k=1).results[0].hits[0]
        (query,) = self.client.embed([BRIDGE])
        (passage,) = self.client.embed([hit.text], kind="passage", model=index.model.name)
        self.assertEqual(len(query), index.dimension)
        product = sum(a * b for a, b in zip(query, passage, strict=True))
        self.assertEqual(struct.unpack("f", struct.pack("f", product))[0], hit.score)
        self.assertEqual(self.client.embed([]), [])

    def test_more_texts_than_one_call_takes_keep_their_order(self) -> None:
        texts = [f"text {i}" for i in range(2_050)]
        vectors = self.client.embed(texts)
        self.assertEqual(len(vectors), 2_050)
        self.assertEqual([vectors[2_049]], self.client.embed([texts[2_049]]))

    def test_what_the_server_refuses_is_raised_with_its_code_and_not_repeated(self) -> None:
        calls: dict[str, Callable[[], object]] = {
            "K_TOO_LARGE": lambda: self.client.search([BRIDGE], k=100_000),
            "INVALID_REQUEST": lambda: self.client.search([BRIDGE], max_chars=1),
            "NOT_FOUND": lambda: self.client.search([BRIDGE], index="other"),
            "model_not_found": lambda: self.client.embed(["a"], model="other"),
        }
        for code, call in calls.items():
            with self.subTest(code), self.assertRaises(TrawlResponseError) as raised:
                call()
            self.assertEqual(raised.exception.code, code)

    def test_one_text_in_place_of_a_list_is_refused_before_it_is_sent(self) -> None:
        with self.assertRaisesRegex(TypeError, "give a list"):
            self.client.search(BRIDGE)
        with self.assertRaisesRegex(TypeError, "give a list"):
            self.client.retrieve(BRIDGE)
        with self.assertRaisesRegex(TypeError, "give a list"):
            self.client.embed(BRIDGE)
        with self.assertRaisesRegex(TypeError, "give a list"):
            self.client.search([BRIDGE], exclude="s-0001")
        with self.assertRaisesRegex(TypeError, "not int"):
            self.client.search([3])  # type: ignore[list-item]

    def test_one_client_serves_many_threads(self) -> None:
        expected = self.client.search([BRIDGE], k=3).results[0].hits
        with ThreadPoolExecutor(32) as threads:
            answers = list(threads.map(lambda _: self.client.search([BRIDGE], k=3).results[0].hits, range(128)))
        self.assertEqual(answers, [expected] * 128)

    def test_a_server_that_is_not_there_is_told_as_that(self) -> None:
        with (
            TrawlClient("http://127.0.0.1:9", retry=Retry(attempts=1)) as nowhere,
            self.assertRaisesRegex(TrawlConnectionError, "127.0.0.1:9.*ConnectError"),
        ):
            nowhere.indexes()
        with TrawlClient("http://127.0.0.1:9") as nowhere, self.assertRaisesRegex(TrawlConnectionError, "not ready"):
            nowhere.wait_until_ready(0.2, poll_s=0.05)


class TestAsyncClient(unittest.IsolatedAsyncioTestCase):
    """The client for asyncio."""

    async def test_it_gives_what_the_other_one_gives(self) -> None:
        with TrawlClient(URL) as plain:
            async with AsyncTrawlClient(URL) as client:
                await client.wait_until_ready(10)
                queries: list[str | Query] = [BRIDGE, Query("its designer", question=QUESTION)]
                response = await client.search(queries, k=4, fuse="max")
                self.assertEqual(response.hits, plain.search(queries, k=4, fuse="max").hits)
                self.assertEqual(await client.retrieve([BRIDGE]), plain.retrieve([BRIDGE]))
                self.assertEqual(await client.passage("s-0001"), plain.passage("s-0001"))
                self.assertEqual(await client.indexes(), plain.indexes())
                self.assertEqual(await client.embed([BRIDGE]), plain.embed([BRIDGE]))
                self.assertEqual(await client.ready(), plain.ready())

    async def test_many_calls_at_once_get_their_own_answers(self) -> None:
        async with AsyncTrawlClient(URL, max_connections=16) as client:
            texts = [f"query number {i}" for i in range(100)]
            together = await asyncio.gather(*(client.search([text], k=2) for text in texts))
            (alone,) = (await client.search([texts[57]], k=2)).results
            self.assertEqual(together[57].results[0], alone)
            embedded = [answer.results[0].embedded for answer in together]
            self.assertEqual([each and each.text for each in embedded], texts)

    async def test_a_refusal_has_its_code(self) -> None:
        async with AsyncTrawlClient(URL) as client:
            with self.assertRaises(TrawlResponseError) as raised:
                await client.passage("none")
            self.assertEqual(raised.exception.code, "NOT_FOUND")


class TestFlashRAG(unittest.TestCase):
    """The retriever for FlashRAG."""

    def setUp(self) -> None:
        self.retriever = FlashRAGRetriever(TrawlClient(URL), topk=3, batch_size=2)
        self.addCleanup(self.retriever.client.close)

    def test_a_batch_has_documents_and_scores_for_each_query(self) -> None:
        queries = [BRIDGE, "capital of Finland", "longest river of the Czech Republic"]
        documents, scores = self.retriever.batch_search(queries, return_score=True)
        self.assertEqual([len(each) for each in documents], [3, 3, 3])
        self.assertEqual([len(each) for each in scores], [3, 3, 3])
        self.assertTrue(documents[0][0]["contents"].startswith('"Brooklyn Bridge"\n'))
        self.assertIn("id", documents[0][0])
        self.assertEqual(self.retriever.batch_search(queries), documents)
        self.assertEqual(self.retriever.batch_search(queries, 2), [each[:2] for each in documents])
        self.assertEqual(self.retriever.batch_search([]), [])

    def test_one_query_is_searched_whole(self) -> None:
        # FlashRAG's own dense retriever looks at the first 64 characters alone.
        query = "please tell me, if you happen to know it and are so kind, about the city: capital of Finland"
        documents, scores = self.retriever.search(query, num=1, return_score=True)
        self.assertEqual(documents, self.retriever.batch_search([query], 1)[0])
        self.assertEqual(len(scores), 1)
        self.assertEqual(documents, self.retriever.search(query, 1))

    def test_a_question_comes_before_its_query(self) -> None:
        composed = self.retriever.search(f"{QUESTION} [SEP] its designer")
        self.assertEqual(self.retriever.search("its designer", question=QUESTION), composed)
        self.assertEqual(self.retriever.batch_search(["its designer"], questions=[QUESTION]), [composed])
        with self.assertRaisesRegex(ValueError, "1 queries and 2 questions"):
            self.retriever.batch_search(["a"], questions=["b", "c"])

    def test_row_numbers_come_with_documents(self) -> None:
        documents, rows = self.retriever.batch_search_return_ids([BRIDGE], 2)
        self.assertEqual(rows[0][0], 0)
        self.assertEqual(len(documents[0]), 2)

    def test_it_is_made_from_flashrags_configuration(self) -> None:
        config = {"retrieval_topk": 2, "retrieval_batch_size": 8, "remote_retriever_url": URL}
        retriever = FlashRAGRetriever.from_config(config)
        self.assertEqual(len(retriever.search(BRIDGE)), 2)
        retriever.client.close()
        with self.assertRaisesRegex(ValueError, "remote_retriever_url"):
            FlashRAGRetriever.from_config({"retrieval_topk": 2})


if __name__ == "__main__":
    unittest.main()
