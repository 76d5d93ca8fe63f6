"""Client of a Trawl retrieval server."""

from ._async_client import AsyncTrawlClient
from ._client import TrawlClient
from ._errors import TrawlConnectionError, TrawlError, TrawlQueryError, TrawlResponseError
from ._flashrag import FlashRAGRetriever
from ._retry import Retry
from ._types import (
    Certificate,
    Embedded,
    ExplainedTerm,
    FirstStage,
    Found,
    FusedHit,
    Hit,
    IndexInfo,
    ModelInfo,
    Passage,
    Passages,
    Query,
    QueryResult,
    QueryScores,
    QueryTemplate,
    RankedScore,
    Readiness,
    Reranked,
    ScoredPassage,
    ScoreQuery,
    ScoreResponse,
    SearchResponse,
    Timings,
    WholeDocument,
)

__all__ = [
    "AsyncTrawlClient",
    "Certificate",
    "Embedded",
    "ExplainedTerm",
    "FirstStage",
    "FlashRAGRetriever",
    "Found",
    "FusedHit",
    "Hit",
    "IndexInfo",
    "ModelInfo",
    "Passage",
    "Passages",
    "Query",
    "QueryResult",
    "QueryScores",
    "QueryTemplate",
    "RankedScore",
    "Readiness",
    "Reranked",
    "Retry",
    "ScoreQuery",
    "ScoreResponse",
    "ScoredPassage",
    "SearchResponse",
    "Timings",
    "TrawlClient",
    "TrawlConnectionError",
    "TrawlError",
    "TrawlQueryError",
    "TrawlResponseError",
    "WholeDocument",
]
__version__ = "0.1.0"
