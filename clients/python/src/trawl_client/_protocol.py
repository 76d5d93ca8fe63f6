"""Requests to the server and its responses, for both clients. Nothing here uses the network."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import httpx

from ._errors import TrawlError, TrawlQueryError, TrawlResponseError
from ._score_protocol import exact_id, timings
from ._types import (
    Bm25Info,
    Bm25Parameters,
    Certificate,
    Deduplication,
    Embedded,
    ExplainedTerm,
    Filter,
    FirstStage,
    Found,
    FusedHit,
    Fusion,
    GpuInfo,
    Hit,
    HybridSettings,
    IndexInfo,
    InputType,
    ModelInfo,
    Origin,
    Passage,
    PassageId,
    Perturbed,
    Place,
    Query,
    QueryResult,
    QueryTemplate,
    Readiness,
    Reranked,
    RerankerInfo,
    RerankParameters,
    SearchMode,
    SearchResponse,
    TruncateSide,
    Truncation,
)

Json = dict[str, Any]
QueryLike = str | Query | Mapping[str, str | Sequence[str] | None]
# The server's limit of texts per request, which is OpenAI's.
MAX_EMBEDDED_TEXTS = 2048


def plain(value: Any) -> Any:
    """The Python value of a scalar or an array of numpy, pandas or torch, for ``json.dumps``."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} ({type(value).__name__}) has no JSON form; expected text, numbers, lists and mappings.")


def search_body(
    queries: Sequence[QueryLike],
    *,
    index: str | Sequence[str] | None,
    k: int | None,
    min_score: float | None,
    exclude: Iterable[PassageId],
    fuse: Fusion,
    deduplicate: Deduplication | None,
    candidates: int | None,
    max_chars: int | None,
    documents: bool,
    allow_partial: bool,
    template: QueryTemplate | None,
    truncate: TruncateSide | None,
    mode: SearchMode | None,
    bm25: Bm25Parameters | None,
    hybrid: HybridSettings | None,
    explain: bool,
    rerank: bool | RerankParameters | None,
    filter: Filter | None = None,
    record: Origin | None = None,
) -> Json:
    """The body of POST /v1/search, without the fields that have the server's default."""
    if isinstance(queries, (str, Query, Mapping)):
        raise TypeError("queries is a single query; pass a list of queries.")
    if isinstance(exclude, (str, bytes)):
        raise TypeError("exclude is a single id; pass a list of ids.")
    body: Json = {"queries": [_query(query) for query in queries]}
    optional: Json = {
        "index": index if index is None or isinstance(index, str) else list(index),
        "k": k,
        "minScore": min_score,
        "deduplicate": deduplicate,
        "candidates": candidates,
        "maxChars": max_chars,
        "template": template,
        "truncate": truncate,
        "mode": mode,
        "bm25": None if bm25 is None else dict(bm25),
        "filter": dict(filter) if isinstance(filter, Mapping) else filter,
        "hybrid": None if hybrid is None else dict(hybrid),
        "rerank": dict(rerank) if isinstance(rerank, Mapping) else rerank,
        "record": None if record is None else _record(record),
    }
    body.update({name: value for name, value in optional.items() if value is not None})
    excluded = [exact_id(passage) for passage in exclude]
    if excluded:
        body["exclude"] = excluded
    if fuse != "none":
        body["fuse"] = fuse
    if documents:
        body["documents"] = True
    if allow_partial:
        body["allowPartial"] = True
    if explain:
        body["explain"] = True
    return body


def _record(origin: Origin) -> Json:
    fields: Json = {
        "trajectory": origin.trajectory,
        "turn": origin.turn,
        "questionId": origin.question_id,
        "dataset": origin.dataset,
        "policy": origin.policy,
        "step": origin.step,
        "split": origin.split,
        "tags": origin.tags,
        "question": origin.question,
    }
    return {name: _per_query(value) for name, value in fields.items() if value is not None}


def _per_query(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_per_query(each) for each in value]
    return value


def _query(query: QueryLike) -> str | Json:
    if isinstance(query, str):
        return query
    if isinstance(query, Query):
        body: Json = {"query": query.query, "question": query.question}
        return body | ({"history": list(query.history)} if query.history else {})
    if isinstance(query, Mapping):
        return dict(query)
    expected = "a string, a Query or a mapping with query and question"
    raise TypeError(f"A query must be {expected}, not {type(query).__name__}.")


def search_response(body: Json) -> SearchResponse:
    """The reply of POST /v1/search."""
    fused = body.get("hits")
    return SearchResponse(
        index=body["index"]["name"],
        generation=body["index"]["generation"],
        results=tuple(_result(result) for result in body["results"]),
        hits=None if fused is None else tuple(_fused_hit(hit) for hit in fused),
        timings=timings(body["timings"]),
        mode=cast(SearchMode, body["mode"]),
        view=body.get("view"),
        short=body.get("short"),
    )


def _result(result: Json) -> QueryResult:
    if not result["ok"]:
        return QueryResult(error=TrawlQueryError(result["error"]["code"], result["error"]["message"]))
    embedded = result["embedded"]
    certificate = result["certificate"]
    rerank = result.get("rerank")
    reranked = rerank if rerank is not None and rerank["ok"] else None
    failed = rerank["error"] if rerank is not None and not rerank["ok"] else None
    return QueryResult(
        hits=tuple(_hit(hit) for hit in result.get("hits", ())),
        embedded=Embedded(embedded["text"], embedded["tokens"], cast(Truncation, embedded["cut"])),
        certificate=Certificate(certificate["exact"], certificate["rescored"], certificate.get("depth")),
        reranked=None if reranked is None else Reranked(reranked["model"], reranked["passages"], reranked["truncated"]),
        rerank_error=None if failed is None else TrawlQueryError(failed["code"], failed["message"]),
        failed_indexes={
            failure["index"]: TrawlQueryError(failure["error"]["code"], failure["error"]["message"])
            for failure in result.get("failedIndexes", ())
        },
        perturbed=_perturbed(result.get("perturbed")),
        short=result.get("short"),
    )


def _perturbed(perturbed: Json | None) -> Perturbed | None:
    if perturbed is None:
        return None
    return Perturbed(perturbed.get("droppedGold", 0), perturbed.get("distractors", 0), perturbed.get("delayMs", 0))


def _hit(hit: Json) -> Hit:
    return Hit(
        hit["row"],
        hit["score"],
        hit["text"],
        hit["whole"],
        hit.get("id"),
        hit.get("title"),
        hit.get("document"),
        _terms(hit),
        _first_stage(hit),
        _place(hit.get("dense")),
        _place(hit.get("bm25")),
        hit.get("index"),
        hit.get("indexScore"),
        hit.get("distractor", False),
    )


def _first_stage(hit: Json) -> FirstStage | None:
    first = hit.get("firstStage")
    return None if first is None else FirstStage(first["rank"], first["score"])


def _terms(hit: Json) -> tuple[ExplainedTerm, ...] | None:
    terms = hit.get("terms")
    if terms is None:
        return None
    return tuple(
        ExplainedTerm(term["term"], term["field"], term["boost"], term["documentFrequency"], term["score"])
        for term in terms
    )


def _place(place: Json | None) -> Place | None:
    return None if place is None else Place(place["rank"], place["score"], place.get("part"))


def _fused_hit(hit: Json) -> FusedHit:
    return FusedHit(
        hit["row"],
        hit["score"],
        hit["text"],
        hit["whole"],
        hit.get("id"),
        hit.get("title"),
        hit.get("document"),
        _terms(hit),
        _first_stage(hit),
        _place(hit.get("dense")),
        _place(hit.get("bm25")),
        hit.get("index"),
        hit.get("indexScore"),
        hit.get("distractor", False),
        fused=hit["fused"],
        found_by=tuple(Found(found["query"], found["rank"], found["score"]) for found in hit["from"]),
    )


def retrieve_body(
    queries: Sequence[str],
    topk: int | None,
    questions: Sequence[str | None] | None,
    histories: Sequence[Sequence[str] | None] | None = None,
    template: QueryTemplate | None = None,
    record: Origin | None = None,
) -> Json:
    """The body of POST /retrieve as Search-R1's clients send it, with scores requested."""
    if isinstance(queries, str):
        raise TypeError("queries is a single string; pass a list of strings.")
    body: Json = {"queries": list(queries), "return_scores": True}
    if topk is not None:
        body["topk"] = topk
    if questions is not None:
        body["questions"] = list(questions)
    if histories is not None:
        body["history_queries"] = [None if history is None else list(history) for history in histories]
    if template is not None:
        body["template"] = template
    if record is not None:
        body["record"] = _record(record)
    return body


def result_lists(body: Json) -> list[list[dict[str, Any]]]:
    """The reply of POST /retrieve."""
    lists: list[list[dict[str, Any]]] = body["result"]
    return lists


def passage_path(passage_id: PassageId) -> str:
    """The path of a passage, whose id may contain any character."""
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
            model=_model(index["model"]),
            modes=tuple(index["modes"]),
            columns={column["name"]: column["type"] for column in index["columns"]},
            views={view["name"]: view["passages"] for view in index["views"]},
            default=index["default"],
            deleted_rows=index["deletedRows"],
            bm25=_bm25(index["bm25"]),
            reranker=_reranker(index["reranker"]),
            gpu=_gpu(index.get("gpu")),
            view_sha256={view["name"]: view["sha256"] for view in index["views"] if "sha256" in view},
        )
        for index in body["indexes"]
    ]


def groups(body: Json) -> dict[str, tuple[str, ...]]:
    """The groups in the reply of GET /v1/indexes, with the names of their indexes."""
    return {group["name"]: tuple(group["indexes"]) for group in body["groups"]}


def _model(model: Json | None) -> ModelInfo | None:
    if model is None:
        return None
    template = cast(QueryTemplate, model["queryTemplate"])
    return ModelInfo(model["name"], model["sha256"], model["prefixes"], model["maxTokens"], template)


def _bm25(bm25: Json | None) -> Bm25Info | None:
    if bm25 is None:
        return None
    return Bm25Info(tuple(bm25["fields"]), bm25["analyser"], bm25["k1"], bm25["b"], bm25.get("scoredBy"))


def _reranker(reranker: Json | None) -> RerankerInfo | None:
    if reranker is None:
        return None
    return RerankerInfo(reranker["name"], reranker["maxTokens"], reranker.get("sha256"))


def _gpu(gpu: Json | None) -> GpuInfo | None:
    return None if gpu is None else GpuInfo(gpu["name"], gpu["cuda"], gpu["bytes"], gpu["failed"])


def the_only_model(found: Sequence[IndexInfo]) -> str:
    """The name of the server's encoder, or ``TrawlError`` if it has several."""
    names = {index.model.name for index in found if index.model is not None}
    if len(names) != 1:
        raise TrawlError(f"The server has the encoders {', '.join(sorted(names)) or '(none)'}; choose one with model=.")
    return names.pop()


def embedding_batches(texts: Sequence[str]) -> list[list[str]]:
    """The texts in batches that the server accepts."""
    if isinstance(texts, str):
        raise TypeError("texts is a single string; pass a list of strings.")
    return [list(texts[i : i + MAX_EMBEDDED_TEXTS]) for i in range(0, len(texts), MAX_EMBEDDED_TEXTS)]


def embeddings_body(texts: list[str], model: str, input_type: InputType) -> Json:
    """The body of POST /v1/embeddings, with base64, which is exact and has a quarter of the bytes of JSON numbers."""
    return {"input": texts, "model": model, "input_type": input_type, "encoding_format": "base64"}


def vectors(body: Json) -> list[list[float]]:
    """The reply of POST /v1/embeddings: little-endian float32 values in base64."""
    rows = sorted(body["data"], key=lambda item: cast(int, item["index"]))
    return [_floats(base64.b64decode(item["embedding"])) for item in rows]


def _floats(raw: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def not_ready(response: httpx.Response) -> str | None:
    """Why the server is not ready: it is starting or stopping, or a proxy could not reach it. None if it is ready."""
    if response.status_code != 503:
        return None
    try:
        body = response.json()
        if response.request.url.path.endswith("/readyz"):
            return f"503, {body['status']}"
        code = body["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return "503 without the error format of a Trawl server"
    return f"503, {code}" if code == "NOT_READY" else None


def readiness(response: httpx.Response, url: str) -> Readiness:
    """The reply of GET /readyz, which has status 503 while the server starts or stops."""
    if response.status_code not in (200, 503):
        raise_for_error(response, url)
    facts = json_object(response)
    return Readiness(response.status_code == 200, str(facts.get("status", "")), facts)


def raise_for_error(response: httpx.Response, url: str) -> None:
    """Raises ``TrawlResponseError`` if the status is not 2xx."""
    if response.is_success:
        return
    code, message = "UNKNOWN", response.reason_phrase or "The server refused the request."
    try:
        error = response.json()["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        pass
    raise TrawlResponseError(response.status_code, code, message, response.headers.get("x-request-id"), url)


def json_object(response: httpx.Response) -> Json:
    """The body as a JSON object; ``TrawlError`` if it is not one."""
    try:
        body = response.json()
    except (ValueError, json.JSONDecodeError) as error:
        raise TrawlError(f"The response of {response.url} is not JSON. Check that it is a Trawl server.") from error
    if not isinstance(body, dict):
        raise TrawlError(
            f"The response of {response.url} is a JSON {type(body).__name__}, but a Trawl server sends an object."
        )
    return body


def headers(api_key: str | None) -> dict[str, str]:
    """The headers of every request."""
    return {"accept": "application/json"} | ({} if api_key is None else {"authorization": f"Bearer {api_key}"})
