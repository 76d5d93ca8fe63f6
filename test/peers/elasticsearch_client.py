"""Asks a server the questions of ArtSearch and Agentic-RAG-R1 with elasticsearch-py. Input: {"url", "key"}."""

import json
import sys

import elasticsearch
from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

request = json.load(sys.stdin)
client = Elasticsearch(request["url"], basic_auth=("elastic", request["key"]))
query = {"multi_match": {"query": "walker bridge", "fields": ["title", "text"]}}


def error_of(kind, **search):
    try:
        client.search(**search)
    except kind as error:
        return {"status": error.status_code, "error": error.error}
    return None


answer = {
    "version": elasticsearch.__version__[0],
    "ping": client.ping(),
    "number": client.info()["version"]["number"],
    "titles": [hit["_source"]["title"] for hit in client.search(index="wiki_en", query=query, size=5)["hits"]["hits"]],
    "missing": error_of(NotFoundError, index="wiki_unsupported", query={"match_all": {}}),
    "unknown": error_of(BadRequestError, index="wiki_en", query={"foo": {}}),
    "sorted": [
        hit["sort"]
        for hit in client.search(index="wiki_en", query={"range": {"year": {"gte": 1900}}}, sort=[{"year": "desc"}])["hits"]["hits"]
    ],
    "highlighted": client.search(
        index="wiki_en",
        query={"match": {"title": "walker"}},
        highlight={"fields": {"title": {"number_of_fragments": 0}}},
        fields=["year"],
        source=False,
    )["hits"]["hits"][0],
    "vectorless": client.search(index="wiki_en", knn={"field": "vector", "query_vector": [1.0], "k": 1, "num_candidates": 1})["hits"]["hits"],
    "count": client.count(index="wiki_en", query={"match": {"text": "walker"}})["count"],
    "exists": bool(client.indices.exists(index="wiki_en")),
    "document": client.get(index="wiki_en", id="1")["_source"]["title"],
    "mget": [doc["found"] for doc in client.mget(index="wiki_en", ids=["1", "x"])["docs"]],
    "msearch": [part["status"] for part in client.msearch(searches=[{"index": "wiki_en"}, {"query": query}])["responses"]],
    "indices": [row["index"] for row in client.cat.indices(format="json")],
    "health": client.cluster.health()["status"],
}
json.dump(answer, sys.stdout)
