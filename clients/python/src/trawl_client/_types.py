"""What calls take and give. Field names are the server's, in Python's spelling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ._errors import TrawlQueryError

PassageId: TypeAlias = str | int
Fusion: TypeAlias = Literal["none", "rrf", "max"]
Deduplication: TypeAlias = Literal["none", "passage", "title"]
TruncateSide: TypeAlias = Literal["tail", "question"]
TextKind: TypeAlias = Literal["query", "passage"]
Cut: TypeAlias = Literal["nothing", "tail", "question", "question-and-tail"]


@dataclass(frozen=True, slots=True)
class Query:
    """A sub-query and the question it serves: embedded as ``{question} [SEP] {query}``."""

    query: str
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Which query found a passage: its position in the call, its rank there from 1, and the score."""

    query: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found. ``score`` is larger for nearer passages, whatever the metric."""

    row: int
    score: float
    text: str
    whole: bool
    id: PassageId | None = None
    title: str | None = None
    document: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FusedHit(Hit):
    """A passage of a list ordered by ``fused``; ``found_by`` has the queries that found it, best first."""

    fused: float = 0.0
    found_by: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Embedded:
    """What was embedded for a query: the text with its prefix, before the limit cut it, and what was cut."""

    text: str
    tokens: int
    cut: Cut


@dataclass(frozen=True, slots=True)
class Certificate:
    """``exact``: no other passage belongs among the hits. ``rescored``: rows scored for that; None where all are."""

    exact: bool
    rescored: int | None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The outcome of one query: ``error`` where it failed, else ``hits`` best first (empty in a fused search)."""

    hits: tuple[Hit, ...] = ()
    embedded: Embedded | None = None
    certificate: Certificate | None = None
    error: TrawlQueryError | None = None

    @property
    def ok(self) -> bool:
        """Whether the query was answered."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds of the call's stages on the server."""

    embed_ms: float
    search_ms: float
    fetch_ms: float


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """``results`` has one entry per query, in their order; ``hits`` is the fused list, or None without fusion."""

    index: str
    generation: str
    results: tuple[QueryResult, ...]
    hits: tuple[FusedHit, ...] | None
    timings: Timings

    def raise_for_errors(self) -> SearchResponse:
        """Raises the error of the first query that failed; else gives the response itself."""
        for result in self.results:
            if result.error is not None:
                raise result.error
        return self

    def __iter__(self) -> Iterator[QueryResult]:
        """The results, one per query."""
        return iter(self.results)


@dataclass(frozen=True, slots=True)
class Passage:
    """A row of the corpus, ``contents`` added where it has none; ``same_id`` has further rows with its id."""

    row: int
    document: dict[str, Any]
    same_id: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The encoder of an index. Prefixes and limits are those of queries and of passages."""

    name: str
    sha256: str
    prefixes: dict[str, str]
    max_tokens: dict[str, int]


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index that the server has; ``generation`` changes whenever it is built anew."""

    name: str
    rows: int
    dimension: int
    metric: str
    generation: str
    model: ModelInfo


@dataclass(frozen=True, slots=True)
class Readiness:
    """``facts`` is the server's whole answer: of the index when ready, else the progress of the start."""

    ready: bool
    status: str
    facts: dict[str, Any]
