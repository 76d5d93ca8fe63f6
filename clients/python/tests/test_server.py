"""Against a real Trawl server with the sample index; SERVER_URL is its address. WORDS_URL is that of a server with an
index of words alone.
"""

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
    Origin,
    Query,
    Retry,
    ScoreQuery,
    TrawlClient,
    TrawlConnectionError,
    TrawlResponseError,
)

URL = os.environ["SERVER_URL"]
WORDS_URL = os.environ["WORDS_URL"]
BRIDGE = "who designed the Brooklyn Bridge"
QUESTION = "Where was the designer of the Brooklyn Bridge born?"


class TestWords(unittest.TestCase):
    """A server whose index has words and no vectors."""

    def setUp(self) -> None:
        self.client = TrawlClient(WORDS_URL, retry=Retry(attempts=3))
        self.addCleanup(self.client.close)

    def test_its_index_has_no_model(self) -> None:
        (index,) = self.client.indexes()
        self.assertEqual((index.model, index.metric, index.modes), (None, None, ("bm25",)))

    def test_a_search_ranks_by_words_with_the_given_parameters(self) -> None:
        usual = self.client.search([BRIDGE], k=2)
        self.assertEqual((usual.mode, usual.results[0].hits[0].title), ("bm25", "Brooklyn Bridge"))
        other = self.client.search([BRIDGE], k=2, mode="bm25", bm25={"k1": 2.0, "b": 0.1})
        self.assertNotEqual(other.results[0].hits[0].score, usual.results[0].hits[0].score)

    def test_explained_hits_have_the_terms_of_their_scores(self) -> None:
        (hit, *_) = self.client.search([BRIDGE], k=2, explain=True).results[0].hits
        assert hit.terms is not None
        self.assertEqual([term.term for term in hit.terms if term.term == "bridg"], ["bridg"])
        self.assertTrue(all(term.field == "contents" and term.document_frequency > 0 for term in hit.terms))
        self.assertAlmostEqual(sum(term.score for term in hit.terms), hit.score, places=4)
        (fused, *_) = self.client.search([BRIDGE], fuse="rrf", explain=True).hits or ()
        self.assertEqual(fused.terms, hit.terms)
        self.assertIsNone(self.client.search([BRIDGE]).results[0].hits[0].terms)

    def test_the_order_of_pyserini_rounds_scores(self) -> None:
        (hit, *_) = self.client.search([BRIDGE], k=1, bm25={"order": "pyserini"}).results[0].hits
        self.assertAlmostEqual(hit.score, round(hit.score, 4), places=6)

    def test_a_search_by_vectors_is_refused(self) -> None:
        with self.assertRaisesRegex(TrawlResponseError, "no vectors"):
            self.client.search([BRIDGE], mode="dense")

    def test_a_hybrid_search_is_refused_with_the_way_to_get_it(self) -> None:
        with self.assertRaisesRegex(TrawlResponseError, "needs vectors and an inverted index"):
            self.client.search([BRIDGE], mode="hybrid", hybrid={"fusion": "rrf", "depth": 20})


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

    def test_a_text_may_contain_half_a_surrogate_pair(self) -> None:
        response = self.client.search([BRIDGE, "\ud83d bridge"], k=2)
        self.assertEqual([len(result.hits) for result in response], [2, 2])
        self.assertEqual([len(hits) for hits in self.client.retrieve(["\ud83d"], topk=1)], [1])

    def test_a_short_list_says_why(self) -> None:
        full, short = (self.client.search([BRIDGE], k=2, min_score=score).results[0] for score in (None, 1e9))
        self.assertEqual([full.short, short.short], [None, "minScore"])
        fused = self.client.search([BRIDGE], k=2, min_score=1e9, fuse="rrf")
        self.assertEqual([fused.short, self.client.search([BRIDGE], k=2, fuse="rrf").short], ["minScore", None])

    def test_the_fused_list_leaves_out_excluded_passages(self) -> None:
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

    def test_a_long_question_is_truncated_before_its_query_if_asked(self) -> None:
        query = Query("its length", question="word " * 400)
        cuts = [self.client.search([query], truncate=side).results[0].embedded for side in ("tail", "question")]
        self.assertEqual([cut and cut.cut for cut in cuts], ["tail", "question"])

    def test_the_template_decides_whether_the_history_is_embedded(self) -> None:
        query = Query("its designer", question=QUESTION, history=["Brooklyn Bridge", "its height"])
        texts = [
            result.embedded and result.embedded.text
            for template in (None, "question-history-query", "history-query", "query")
            for result in self.client.search([query], template=template)
        ]
        history = "Brooklyn Bridge [SEP] its height [SEP] its designer"
        self.assertEqual(
            texts, [f"{QUESTION} [SEP] its designer", f"{QUESTION} [SEP] {history}", history, "its designer"]
        )
        lists = [
            self.client.retrieve(
                ["its designer"],
                topk=2,
                histories=[query.history],
                questions=[QUESTION],
                template="question-history-query",
            ),
            self.client.retrieve([f"{QUESTION} [SEP] {history}"], topk=2),
        ]
        self.assertEqual(lists[0], lists[1])

    def test_where_queries_come_from_changes_no_reply(self) -> None:
        record = Origin(trajectory=["a", None], turn=1, tags={"arm": "b"}, question=["First?", "Second?"])
        queries = [BRIDGE, "its designer"]
        plain = self.client.retrieve(queries, topk=1)
        self.assertEqual(self.client.retrieve(queries, topk=1, record=record), plain)
        hits = [result.hits for result in self.client.search(queries, k=1, record=record)]
        self.assertEqual(hits, [result.hits for result in self.client.search(queries, k=1)])
        with self.assertRaises(TrawlResponseError) as raised:
            self.client.search(queries, record=Origin(turn=[1]))
        self.assertEqual(raised.exception.status, 422)

    def test_a_list_of_indexes_gives_hits_that_name_their_index(self) -> None:
        alone = self.client.search([BRIDGE], k=3).results[0]
        (result,) = self.client.search([BRIDGE], k=3, index=["sample"], allow_partial=True)
        self.assertEqual(
            [(hit.row, hit.index, hit.index_score) for hit in result.hits],
            [(hit.row, "sample", hit.score) for hit in alone.hits],
        )
        self.assertEqual(result.failed_indexes, {})

    def test_min_score_leaves_out_hits_below_it(self) -> None:
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

    def test_passages_come_by_id_and_row_with_their_documents(self) -> None:
        found = self.client.passages(["s-0001", "none"], rows=[0], whole_documents=True)
        first = self.client.passage("s-0001")
        self.assertEqual([None if each is None else each.row for each in found.passages], [first.row, None, 0])
        assert found.documents is not None and found.documents[0] is not None
        self.assertEqual((found.documents[0].title, found.documents[0].whole), ("Brooklyn Bridge", True))
        self.assertIn(found.documents[0].text, first.document["contents"])
        self.assertIsNone(self.client.passages([2**70]).passages[0])
        cut = self.client.passages(["s-0001"], whole_documents=True, cut={"tokens": 8}).documents
        assert cut is not None and cut[0] is not None
        self.assertTrue(found.documents[0].text.startswith(cut[0].text))
        self.assertEqual((cut[0].whole, len(cut[0].text) > 0), (False, True))
        with self.assertRaises(TypeError):
            self.client.passages("s-0001")

    def test_passages_of_several_indexes_are_scored_with_the_name_of_their_index(self) -> None:
        hit = self.client.search([BRIDGE], k=1).results[0].hits[0]
        (result,) = self.client.score(
            [ScoreQuery(BRIDGE, ids=[hit.id or ""])], index=["sample"], modes=["dense"]
        ).results
        (passage,) = result.passages
        assert passage is not None and passage.dense is not None
        self.assertEqual((passage.index, passage.row, passage.dense.rank), ("sample", hit.row, 1))

    def test_scores_and_ranks_are_those_of_a_search(self) -> None:
        hits = self.client.search([BRIDGE], k=5).results[0].hits
        query = ScoreQuery(BRIDGE, ids=[hits[3].id or "", "none"], rows=[hits[0].row], answers=["Roebling"])
        (result,) = self.client.score([query], max_rank=4, modes=["dense"]).results
        fourth, unknown, first = result.passages
        assert fourth is not None and fourth.dense is not None and first is not None and first.dense is not None
        self.assertEqual((fourth.dense.score, fourth.dense.rank), (hits[3].score, 4))
        self.assertEqual((first.dense.score, first.dense.rank, first.bm25), (hits[0].score, 1, None))
        self.assertEqual((first.answer, unknown), ("Roebling" in hits[0].text, None))
        with self.assertRaises(TypeError):
            self.client.score(query)  # type: ignore[arg-type]

    def test_indexes_and_ready_describe_the_index(self) -> None:
        (index,) = self.client.indexes()
        assert index.model is not None
        self.assertEqual((index.name, index.rows, index.model.name), ("sample", 270, "token-average-256"))
        self.assertEqual((index.views, self.client.search([BRIDGE]).view), ({}, None))
        readiness = self.client.ready()
        self.assertTrue(readiness.ready)
        self.assertEqual(readiness.facts["rows"], 270)

    def test_embed_gives_the_vectors_that_searches_use(self) -> None:
        (index,) = self.client.indexes()
        assert index.model is not None
        hit = self.client.search([BRIDGE], k=1).results[0].hits[0]
        (query,) = self.client.embed([BRIDGE])
        (passage,) = self.client.embed([hit.text], input_type="passage", model=index.model.name)
        self.assertEqual(len(query), index.dimension)
        product = sum(a * b for a, b in zip(query, passage, strict=True))
        self.assertEqual(struct.unpack("f", struct.pack("f", product))[0], hit.score)
        self.assertEqual(self.client.embed([hit.text], input_type="passage"), [passage])
        self.assertEqual(self.client.embed([]), [])

    def test_embed_keeps_the_order_of_more_texts_than_one_request_takes(self) -> None:
        texts = [f"text {i}" for i in range(2_050)]
        vectors = self.client.embed(texts)
        self.assertEqual(len(vectors), 2_050)
        self.assertEqual([vectors[2_049]], self.client.embed([texts[2_049]]))

    def test_a_refusal_is_raised_with_its_code(self) -> None:
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

    def test_a_string_in_place_of_a_list_is_refused_before_it_is_sent(self) -> None:
        with self.assertRaisesRegex(TypeError, "pass a list"):
            self.client.search(BRIDGE)
        with self.assertRaisesRegex(TypeError, "pass a list"):
            self.client.retrieve(BRIDGE)
        with self.assertRaisesRegex(TypeError, "pass a list"):
            self.client.embed(BRIDGE)
        with self.assertRaisesRegex(TypeError, "pass a list"):
            self.client.search([BRIDGE], exclude="s-0001")
        with self.assertRaisesRegex(TypeError, "not int"):
            self.client.search([3])  # type: ignore[list-item]

    def test_one_client_serves_many_threads(self) -> None:
        expected = self.client.search([BRIDGE], k=3).results[0].hits
        with ThreadPoolExecutor(32) as threads:
            answers = list(threads.map(lambda _: self.client.search([BRIDGE], k=3).results[0].hits, range(128)))
        self.assertEqual(answers, [expected] * 128)

    def test_a_server_that_cannot_be_reached_raises_a_connection_error(self) -> None:
        with (
            TrawlClient("http://127.0.0.1:9", retry=Retry(attempts=1)) as nowhere,
            self.assertRaisesRegex(TrawlConnectionError, "127.0.0.1:9.*ConnectError"),
        ):
            nowhere.indexes()
        with TrawlClient("http://127.0.0.1:9") as nowhere, self.assertRaisesRegex(TrawlConnectionError, "not ready"):
            nowhere.wait_until_ready(0.2, poll_s=0.05)


class TestAsyncClient(unittest.IsolatedAsyncioTestCase):
    """The client for asyncio."""

    async def test_it_gives_the_same_results_as_the_client_for_threads(self) -> None:
        with TrawlClient(URL) as plain:
            async with AsyncTrawlClient(URL) as client:
                await client.wait_until_ready(10)
                queries: list[str | Query] = [BRIDGE, Query("its designer", question=QUESTION)]
                response = await client.search(queries, k=4, fuse="max")
                self.assertEqual(response.hits, plain.search(queries, k=4, fuse="max").hits)
                self.assertEqual(await client.retrieve([BRIDGE]), plain.retrieve([BRIDGE]))
                self.assertEqual(await client.passage("s-0001"), plain.passage("s-0001"))
                self.assertEqual(await client.passages(["s-0001"]), plain.passages(["s-0001"]))
                scored = await client.score([ScoreQuery(BRIDGE, rows=[0])])
                self.assertEqual(scored.results, plain.score([ScoreQuery(BRIDGE, rows=[0])]).results)
                self.assertEqual(await client.indexes(), plain.indexes())
                self.assertEqual(await client.embed([BRIDGE]), plain.embed([BRIDGE]))
                self.assertEqual(await client.ready(), plain.ready())

    async def test_each_of_many_concurrent_calls_gets_its_own_answer(self) -> None:
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

    def test_search_uses_the_whole_query(self) -> None:
        # FlashRAG's own dense retriever reads only the first 64 characters.
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

    def test_batch_search_return_ids_gives_row_numbers(self) -> None:
        documents, rows = self.retriever.batch_search_return_ids([BRIDGE], 2)
        self.assertEqual(rows[0][0], 0)
        self.assertEqual(len(documents[0]), 2)

    def test_from_config_reads_flashrags_configuration(self) -> None:
        config = {"retrieval_topk": 2, "retrieval_batch_size": 8, "remote_retriever_url": URL}
        retriever = FlashRAGRetriever.from_config(config)
        self.assertEqual(len(retriever.search(BRIDGE)), 2)
        retriever.client.close()
        with self.assertRaisesRegex(ValueError, "remote_retriever_url"):
            FlashRAGRetriever.from_config({"retrieval_topk": 2})


if __name__ == "__main__":
    unittest.main()
