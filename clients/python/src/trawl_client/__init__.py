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
    Place,
    Query,
    QueryResult,
    QueryTemplate,
    Readiness,
    Reranked,
    SearchResponse,
    Timings,
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
    "Place",
    "Query",
    "QueryResult",
    "QueryTemplate",
    "Readiness",
    "Reranked",
    "Retry",
    "SearchResponse",
    "Timings",
    "TrawlClient",
    "TrawlConnectionError",
    "TrawlError",
    "TrawlQueryError",
    "TrawlResponseError",
]
__version__ = "0.1.0"
