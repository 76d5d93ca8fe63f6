"""Uses a Trawl server with Cohere's official client, versions 1 and 2 of its API."""

import json
import sys

import cohere
from cohere.core.api_error import ApiError

request = json.load(sys.stdin)
url, query, documents = request["url"], request["query"], request["documents"]
v1 = cohere.Client("none", base_url=url)
v2 = cohere.ClientV2("none", base_url=url)


def ranks(answer):
    return [[result.index, result.relevance_score] for result in answer.results]


def dr_tulu(top_n):
    """As DR Tulu's reranker tool: the text is read from the reply, and the order is its own."""
    results = v2.rerank(model="BAAI/bge-reranker-v2-m3", query=query, documents=documents).results
    best = sorted(results, key=lambda result: result.relevance_score, reverse=True)
    return [[result.index, result.document["text"]] for result in best[:top_n]]


def status_of(call):
    try:
        call()
    except ApiError as error:
        return error.status_code
    return None


json.dump(
    {
        "v1": ranks(v1.rerank(model="any", query=query, documents=documents)),
        "v1_first": ranks(v1.rerank(model="any", query=query, documents=documents, top_n=1)),
        "v1_texts": [
            result.document.text
            for result in v1.rerank(model="any", query=query, documents=documents, return_documents=True).results
        ],
        "v1_fields": ranks(
            v1.rerank(
                model="any",
                query=query,
                documents=[{"title": "x", "text": "y"}, {"title": "xxxx", "text": "y"}],
                rank_fields=["title", "text"],
            )
        ),
        "v2": ranks(v2.rerank(model="any", query=query, documents=documents)),
        "v2_first": ranks(v2.rerank(model="any", query=query, documents=documents, top_n=1, max_tokens_per_doc=100)),
        "dr_tulu": dr_tulu(2),
        "wrong": status_of(lambda: v2.rerank(model="any", query=query, documents=documents, top_n=-1)),
    },
    sys.stdout,
)
