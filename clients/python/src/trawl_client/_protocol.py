"""Requests and replies of the server, shared by both clients. Nothing here touches the network."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import httpx

from ._errors import TrawlError, TrawlQueryError, TrawlResponseError
from ._types import (
    Certificate,
    Cut,
    Deduplication,
    Embedded,
    Found,
    FusedHit,
    Fusion,
    Hit,
    IndexInfo,
    ModelInfo,
    Passage,
    PassageId,
    Query,
    QueryResult,
    Readiness,
    SearchResponse,
    TextKind,
    Timings,
    TruncateSide,
)

Json = dict[str, Any]
QueryLike = str | Query | Mapping[str, str | None]
# More texts in one call are refused by the server, as by OpenAI's.
MAX_EMBEDDED_TEXTS = 2048
# IDs beyond this are sent as text: other JSON readers would round them.
_LARGEST_SAFE = 2**53 - 1


def search_body(
    queries: Sequence[QueryLike],
    *,
    index: str | None,
    k: int | None,
    min_score: float | None,
    exclude: Iterable[PassageId],
    fuse: Fusion,
    deduplicate: Deduplication | None,
    candidates: int | None,
    max_chars: int | None,
    documents: bool,
    truncate: TruncateSide,
) -> Json:
    """The body of POST /v1/search; what is left to the server's default is left out."""
    if isinstance(queries, (str, Query, Mapping)):
        raise TypeError("queries is one query; give a list of queries.")
    if isinstance(exclude, (str, bytes)):
        raise TypeError("exclude is one id; give a list of ids.")
    body: Json = {"queries": [_query(query) for query in queries]}
    optional: Json = {
        "index": index,
        "k": k,
        "minScore": min_score,
        "deduplicate": deduplicate,
        "candidates": candidates,
        "maxChars": max_chars,
    }
    body.update({name: value for name, value in optional.items() if value is not None})
    excluded = [_exact_id(passage) for passage in exclude]
    if excluded:
        body["exclude"] = excluded
    if fuse != "none":
        body["fuse"] = fuse
    if documents:
        body["documents"] = True
    if truncate != "tail":
        body["truncate"] = truncate
    return body


def _query(query: QueryLike) -> str | Json:
    if isinstance(query, str):
        return query
    if isinstance(query, Query):
        return {"query": query.query, "question": query.question}
    if isinstance(query, Mapping):
        return dict(query)
    raise TypeError(f"A query is a string, a Query or a mapping with query and question, not {type(query).__name__}.")


def _exact_id(passage: PassageId) -> PassageId:
    return str(passage) if isinstance(passage, int) and abs(passage) > _LARGEST_SAFE else passage


def search_response(body: Json) -> SearchResponse:
    """The reply of POST /v1/search."""
    timings = body["timings"]
    fused = body.get("hits")
    return SearchResponse(
        index=body["index"]["name"],
        generation=body["index"]["generation"],
        results=tuple(_result(result) for result in body["results"]),
        hits=None if fused is None else tuple(_fused_hit(hit) for hit in fused),
        timings=Timings(timings["embedMs"], timings["searchMs"], timings["fetchMs"]),
    )


def _result(result: Json) -> QueryResult:
    if not result["ok"]:
        return QueryResult(error=TrawlQueryError(result["error"]["code"], result["error"]["message"]))
    embedded = result["embedded"]
    certificate = result["certificate"]
    return QueryResult(
        hits=tuple(_hit(hit) for hit in result.get("hits", ())),
        embedded=Embedded(embedded["text"], embedded["tokens"], cast(Cut, embedded["cut"])),
        certificate=Certificate(certificate["exact"], certificate["rescored"]),
    )


def _hit(hit: Json) -> Hit:
    return Hit(
        hit["row"], hit["score"], hit["text"], hit["whole"], hit.get("id"), hit.get("title"), hit.get("document")
    )


def _fused_hit(hit: Json) -> FusedHit:
    return FusedHit(
        hit["row"],
        hit["score"],
        hit["text"],
        hit["whole"],
        hit.get("id"),
        hit.get("title"),
        hit.get("document"),
        fused=hit["fused"],
        found_by=tuple(Found(found["query"], found["rank"], found["score"]) for found in hit["from"]),
    )


def retrieve_body(queries: Sequence[str], topk: int | None, questions: Sequence[str | None] | None) -> Json:
    """The body of POST /retrieve as Search-R1's clients send it, with scores."""
    if isinstance(queries, str):
        raise TypeError("queries is one string; give a list of strings.")
    body: Json = {"queries": list(queries), "return_scores": True}
    if topk is not None:
        body["topk"] = topk
    if questions is not None:
        body["questions"] = list(questions)
    return body


def result_lists(body: Json) -> list[list[dict[str, Any]]]:
    """The reply of POST /retrieve."""
    lists: list[list[dict[str, Any]]] = body["result"]
    return lists


def passage_path(passage_id: PassageId) -> str:
    """The path of a passage; an id may hold anything."""
    return f"/v1/passages/{quote(str(passage_id), safe='')}"


def passage(body: Json) -> Passage:
    """The reply of GET /v1/passages/{id}."""
    return Passage(body["row"], body["document"], tuple(body.get("sameId", ())))


def indexes(body: Json) -> list[IndexInfo]:
    """The reply of GET /v1/indexes."""
    return [
        IndexInfo(
            name=index["name"],
            rows=index["rows"],
            dimension=index["dimension"],
            metric=index["metric"],
            generation=index["generation"],
            model=ModelInfo(
                index["model"]["name"],
                index["model"]["sha256"],
                index["model"]["prefixes"],
                index["model"]["maxTokens"],
            ),
        )
        for index in body["indexes"]
    ]


def the_only_model(found: Sequence[IndexInfo]) -> str:
    """The encoder that texts can only be meant for."""
    names = {index.model.name for index in found}
    if len(names) != 1:
        raise TrawlError(f"The server has the encoders {', '.join(sorted(names)) or '(none)'}; say which as model=.")
    return names.pop()


def embedding_batches(texts: Sequence[str]) -> list[list[str]]:
    """The texts in calls that the server takes."""
    if isinstance(texts, str):
        raise TypeError("texts is one string; give a list of strings.")
    return [list(texts[i : i + MAX_EMBEDDED_TEXTS]) for i in range(0, len(texts), MAX_EMBEDDED_TEXTS)]


def embeddings_body(texts: list[str], model: str, kind: TextKind) -> Json:
    """The body of POST /v1/embeddings; base64 is a quarter of the bytes and exact."""
    return {"input": texts, "model": model, "input_type": kind, "encoding_format": "base64"}


def vectors(body: Json) -> list[list[float]]:
    """The reply of POST /v1/embeddings: float32 values, little-endian, in base64."""
    rows = sorted(body["data"], key=lambda item: cast(int, item["index"]))
    return [_floats(base64.b64decode(item["embedding"])) for item in rows]


def _floats(raw: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def readiness(response: httpx.Response) -> Readiness:
    """The reply of GET /readyz, which says 503 while starting and stopping."""
    if response.status_code not in (200, 503):
        raise_for_error(response)
    facts = json_object(response)
    return Readiness(response.status_code == 200, str(facts.get("status", "")), facts)


def raise_for_error(response: httpx.Response) -> None:
    """Raises what an answer other than 2xx says."""
    if response.is_success:
        return
    code, message = "UNKNOWN", response.reason_phrase or "The server refused the request."
    try:
        error = response.json()["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        pass
    raise TrawlResponseError(response.status_code, code, message, response.headers.get("x-request-id"))


def json_object(response: httpx.Response) -> Json:
    """The body as a JSON object; something else is no Trawl server."""
    try:
        body = response.json()
    except (ValueError, json.JSONDecodeError) as error:
        raise TrawlError(f"{response.url} answers with something that is not JSON; is it a Trawl server?") from error
    if not isinstance(body, dict):
        raise TrawlError(f"{response.url} answers with a JSON {type(body).__name__}; a Trawl server sends an object.")
    return body


def headers(api_key: str | None) -> dict[str, str]:
    """Headers of every request."""
    return {"accept": "application/json"} | ({} if api_key is None else {"authorization": f"Bearer {api_key}"})
