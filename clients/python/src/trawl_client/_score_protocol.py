"""Requests and responses of POST /v1/passages and POST /v1/score."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from ._errors import TrawlQueryError
from ._types import (
    Bm25Parameters,
    DocumentCut,
    Passage,
    PassageId,
    Passages,
    QueryScores,
    RankedScore,
    ScoredPassage,
    ScoreMode,
    ScoreQuery,
    ScoreResponse,
    Timings,
    TruncateSide,
    WholeDocument,
)

Json = dict[str, Any]
# Larger ids are sent as text, because JSON readers may round them.
_LARGEST_SAFE = 2**53 - 1


def exact_id(passage: PassageId) -> PassageId:
    """The id as JSON can carry it."""
    if isinstance(passage, str):
        return passage
    if isinstance(passage, bool) or not hasattr(passage, "__index__"):
        raise TypeError(f"An id is a text or an integer, not {passage!r} ({type(passage).__name__}).")
    number = operator.index(passage)
    return str(number) if abs(number) > _LARGEST_SAFE else number


def passages_body(
    ids: Iterable[PassageId], rows: Iterable[int], whole_documents: bool, cut: DocumentCut | None, index: str | None
) -> Json:
    """The body of POST /v1/passages."""
    if isinstance(ids, (str, bytes)):
        raise TypeError("ids is a single id; pass a list of ids.")
    body: Json = {"ids": [exact_id(passage) for passage in ids], "rows": list(rows), "wholeDocuments": whole_documents}
    if cut is not None:
        body["cut"] = dict(cut)
    if index is not None:
        body["index"] = index
    return body


def passages(body: Json) -> Passages:
    """The reply of POST /v1/passages."""
    documents = body.get("documents")
    return Passages(
        body["index"]["name"],
        body["index"]["generation"],
        tuple(None if each is None else Passage(each["row"], each["document"]) for each in body["passages"]),
        None if documents is None else tuple(None if each is None else _whole(each) for each in documents),
    )


def _whole(body: Json) -> WholeDocument:
    return WholeDocument(body["id"], body["url"], body["title"], body["text"], body["whole"], tuple(body["rows"]))


def score_body(
    queries: Sequence[ScoreQuery],
    *,
    index: str | Sequence[str] | None,
    modes: Sequence[ScoreMode] | None,
    max_rank: int,
    bm25: Bm25Parameters | None,
    truncate: TruncateSide | None,
) -> Json:
    """The body of POST /v1/score, without the fields that have the server's default."""
    if isinstance(queries, ScoreQuery):
        raise TypeError("queries is a single query; pass a list of queries.")
    optional: Json = {
        "index": index if index is None or isinstance(index, str) else list(index),
        "modes": None if modes is None else list(modes),
        "bm25": None if bm25 is None else dict(bm25),
        "truncate": truncate,
    }
    given = {name: value for name, value in optional.items() if value is not None}
    return {"queries": [_query(query) for query in queries], "maxRank": max_rank, **given}


def _query(query: ScoreQuery) -> Json:
    return {
        "query": query.query,
        "question": query.question,
        "ids": [exact_id(passage) for passage in query.ids],
        "rows": list(query.rows),
        "answers": None if query.answers is None else list(query.answers),
    }


def timings(body: Json) -> Timings:
    """The timings of a reply."""
    return Timings(body["embedMs"], body["searchMs"], body["fetchMs"], body["rerankMs"])


def score_response(body: Json) -> ScoreResponse:
    """The reply of POST /v1/score."""
    return ScoreResponse(
        body["index"]["name"],
        body["index"]["generation"],
        tuple(_result(result) for result in body["results"]),
        timings(body["timings"]),
    )


def _result(result: Json) -> QueryScores:
    if not result["ok"]:
        return QueryScores(error=TrawlQueryError(result["error"]["code"], result["error"]["message"]))
    return QueryScores(tuple(None if each is None else _scored(each) for each in result["passages"]))


def _scored(passage: Json) -> ScoredPassage:
    return ScoredPassage(
        passage["row"],
        passage.get("id"),
        _ranked(passage.get("dense")),
        _ranked(passage.get("bm25")),
        passage["rerank"]["score"] if "rerank" in passage else None,
        passage.get("answer"),
        passage.get("index"),
    )


def _ranked(score: Json | None) -> RankedScore | None:
    return None if score is None else RankedScore(score["score"], score["rank"])
