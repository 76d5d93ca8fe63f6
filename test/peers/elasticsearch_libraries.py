"""Fills and searches indexes with BEIR, elasticsearch-py's helpers, LangChain and Haystack as they are. Input: {"url", "sample"}."""

import json
import sys
from pathlib import Path

from elasticsearch import BadRequestError, Elasticsearch, helpers

request = json.load(sys.stdin)
URL = request["url"]
QUERY = "suspension bridge between Manhattan and Brooklyn"


def read(name):
    return [json.loads(line) for line in Path(request["sample"], name).read_text().splitlines()]


PASSAGES, QUESTIONS = read("passages.jsonl"), read("questions.jsonl")


def beir():
    from beir.retrieval.search.lexical import BM25Search

    # The class of BEIR 2.2.0 lacks two methods of its base class, so that Python refuses to make one.
    BM25Search.__abstractmethods__ = frozenset()
    search = BM25Search(index_name="beir", hostname=URL, sleep_for=1)
    corpus = {row["id"]: {"title": row["title"], "text": row["text"]} for row in PASSAGES}
    found = search.search(corpus, {row["id"]: row["question"] for row in QUESTIONS}, 10)
    recall = 0.0
    for row in QUESTIONS:
        scores = found[row["id"]]
        best = sorted(scores, key=scores.get, reverse=True)[:10]
        recall += len(set(row["gold_ids"]) & set(best)) / len(row["gold_ids"])
    return round(recall / len(QUESTIONS), 3)


def bulk_and_scan():
    client = Elasticsearch(URL, http_compress=True)
    rows = [{"_id": row["id"], "title": row["title"], "body": row["text"]} for row in PASSAGES]
    text = {"type": "text", "analyzer": "english"}
    client.indices.create(index="source", mappings={"properties": {"title": text, "body": text}})
    done = [ok for ok, _ in helpers.streaming_bulk(client, rows, index="source", chunk_size=100, refresh=True)]
    scanned = [hit["_id"] for hit in helpers.scan(client, index="source", size=50)]
    matching = {"query": {"match": {"body": "bridge"}}}
    ordered = [hit["_id"] for hit in helpers.scan(client, index="source", size=7, query=matching, preserve_order=True)]
    whole = [hit["_id"] for hit in client.search(index="source", size=1000, **matching)["hits"]["hits"]]
    client.indices.create(index="target", mappings={"properties": {"body": text}})
    copied, _ = helpers.reindex(client, "source", "target", chunk_size=90)
    client.indices.refresh(index="target")
    parallel = [ok for ok, _ in helpers.parallel_bulk(client, rows, index="target", thread_count=3, chunk_size=50)]
    pit = client.open_point_in_time(index="source", keep_alive="1m")["id"]
    page = client.search(pit={"id": pit, "keep_alive": "1m"}, size=3, sort=[{"_shard_doc": "asc"}])
    try:
        client.search(index="target", query={"match": {"title": "bridge"}})
        refused = None
    except BadRequestError as error:
        refused = error.info["error"]["root_cause"][0]["type"]
    return {
        "done": [all(done), len(done)],
        "scanned": [len(scanned), len(set(scanned))],
        "ordered": ordered == whole and len(whole) > 7,
        "copied": [copied, client.count(index="target")["count"]],
        "parallel": [all(parallel), len(parallel)],
        "pit": [hit["_id"] for hit in page["hits"]["hits"]],
        "closed": client.close_point_in_time(id=pit)["succeeded"],
        "refused": refused,
        "tokens": [token["token"] for token in client.indices.analyze(index="source", text="The bridges")["tokens"]],
    }


def langchain():
    from langchain_elasticsearch import BM25Strategy, ElasticsearchStore

    store = ElasticsearchStore(
        index_name="langchain",
        es_url=URL,
        strategy=BM25Strategy(k1=0.9, b=0.4),
        metadata_mappings={"title": {"type": "keyword"}},
    )
    ids = [row["id"] for row in PASSAGES]
    store.add_texts([row["text"] for row in PASSAGES], [{"title": row["title"]} for row in PASSAGES], ids=ids)
    found = store.similarity_search(QUERY, k=3)
    one = [{"term": {"metadata.title": found[1].metadata["title"]}}]
    filtered = store.similarity_search(QUERY, k=3, filter=one)
    store.delete(ids=[ids[0]])
    left = store.similarity_search(QUERY, k=3)
    return [found[0].metadata["title"], len(filtered), left[0].metadata["title"] != found[0].metadata["title"]]


def haystack():
    from haystack import Document
    from haystack_integrations.components.retrievers.elasticsearch import ElasticsearchBM25Retriever
    from haystack_integrations.document_stores.elasticsearch import ElasticsearchDocumentStore

    store = ElasticsearchDocumentStore(hosts=URL, index="haystack")
    documents = [Document(id=row["id"], content=row["text"], meta={"title": row["title"]}) for row in PASSAGES]
    written = store.write_documents(documents)
    retriever = ElasticsearchBM25Retriever(document_store=store, top_k=3, fuzziness="0")
    found = retriever.run(query=QUERY)["documents"]
    try:
        retriever.run(query=QUERY, filters={"field": "meta.title", "operator": "==", "value": "Brooklyn Bridge"})
        refused = None
    except BadRequestError as error:
        refused = error.info["error"]["root_cause"][0]["type"]
    store.delete_documents([found[0].id])
    return [written, found[0].meta["title"], refused, store.count_documents(), len(store.filter_documents())]


json.dump({each.__name__: each() for each in (beir, bulk_and_scan, langchain, haystack)}, sys.stdout)
