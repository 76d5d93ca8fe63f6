"""Arguments and results of calls. Fields have the server's names in Python's spelling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from ._errors import TrawlQueryError

PassageId: TypeAlias = str | int
_Value = TypeVar("_Value")
# One value for all queries, or one (or None) per query.
PerQuery: TypeAlias = _Value | Sequence[_Value | None] | None
Fusion: TypeAlias = Literal["none", "rrf", "max"]
SearchMode: TypeAlias = Literal["dense", "bm25", "hybrid"]
Bm25Parameters: TypeAlias = Mapping[str, float | str | Mapping[str, float]]
# An expression, or its JSON form: docs/filters.md of the server.
Filter: TypeAlias = str | Mapping[str, Any]
ColumnType: TypeAlias = Literal["string", "number", "boolean", "date"]
HybridSettings: TypeAlias = Mapping[str, float | str]
# One of words, characters, tokens.
DocumentCut: TypeAlias = Mapping[str, int]
RerankParameters: TypeAlias = Mapping[str, int | str | bool]
Deduplication: TypeAlias = Literal["none", "passage", "title", "document"]
TruncateSide: TypeAlias = Literal["tail", "question"]
ScoreMode: TypeAlias = Literal["dense", "bm25", "rerank"]
QueryTemplate: TypeAlias = Literal["query", "question-query", "history-query", "question-history-query"]
InputType: TypeAlias = Literal["query", "passage"]
Truncation: TypeAlias = Literal["nothing", "tail", "history", "question", "question-and-tail"]


@dataclass(frozen=True, slots=True)
class Query:
    """A sub-query and the question that it helps to answer, embedded as ``{question} [SEP] {query}``.

    ``history``: the agent's earlier queries, oldest first. They stand between the two if the template has the history.
    """

    query: str
    question: str | None = None
    history: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where queries come from, for ``--record`` of the server. It changes no reply.

    Each value is that of all queries of a call, or a list with one value (or None) per query. ``question``: the
    original question of queries that are searched without it. docs/recording.md of the server describes the rest.
    """

    trajectory: PerQuery[str | int] = None
    turn: PerQuery[int] = None
    question_id: PerQuery[str | int] = None
    dataset: PerQuery[str] = None
    policy: PerQuery[str | int] = None
    step: PerQuery[int] = None
    split: PerQuery[str] = None
    tags: PerQuery[Mapping[str, str | float | bool]] = None
    question: PerQuery[str] = None


@dataclass(frozen=True, slots=True)
class Found:
    """A query that found a passage: its position in the call, and the passage's rank (from 1) and score in its list."""

    query: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A term of a query that a passage has. The scores of a field's terms add up to the score in that field.

    ``field``: the part of the passage that has the term. ``boost``: how often the query has it, times the weight of the
    field. ``document_frequency``: how many passages have it.
    """

    term: str
    field: str
    boost: float
    document_frequency: int
    score: float


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Rank (from 1) and score of a reranked passage in the search that found it."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Place:
    """A passage's rank (from 1) and score in one of the two lists of a hybrid search.

    ``part``: with ``explain``, what the list adds to the score of the hit; else None.
    """

    rank: int
    score: float
    part: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A found passage. A larger ``score`` is nearer, for all metrics. ``whole`` is False for a shortened text.

    ``terms``: the terms of its score, with ``explain``; else None. ``first_stage``: of a reranked passage, whose
    ``score`` is the reranker's; else None. ``dense`` and ``bm25``: its places in the two lists of a hybrid search; None
    where it is not among their first passages, and in other modes.
    ``index`` and ``index_score``: in a search of several indexes, the passage's index and its score there; else None.
    ``distractor``: whether no search found the passage, and the server mixed it in on purpose.
    """

    row: int
    score: float
    text: str
    whole: bool
    id: PassageId | None = None
    title: str | None = None
    document: dict[str, Any] | None = None
    terms: tuple[ExplainedTerm, ...] | None = None
    first_stage: FirstStage | None = None
    dense: Place | None = None
    bm25: Place | None = None
    index: str | None = None
    index_score: float | None = None
    distractor: bool = False


@dataclass(frozen=True, slots=True)
class FusedHit(Hit):
    """A passage of the fused list, which is ordered by ``fused``. ``found_by``: its queries, best first."""

    fused: float = 0.0
    found_by: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Embedded:
    """The embedded text of a query with its prefix, before truncation; its tokens; and what truncation removed.

    ``tokens``: None if the encoder is an endpoint that does not say it.
    """

    text: str
    tokens: int | None
    cut: Truncation


@dataclass(frozen=True, slots=True)
class Certificate:
    """``exact``: no other passage belongs among the hits. ``rescored``: rows scored exactly; None: every row.

    ``depth``: in a hybrid search, the length of the two exact lists whose fusion has the hits; else None.
    """

    exact: bool
    rescored: int | None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Reranked:
    """What the reranker ``model`` did: ``passages`` it scored, of which ``truncated`` were over its token limit."""

    model: str
    passages: int
    truncated: int


@dataclass(frozen=True, slots=True)
class Perturbed:
    """How the server changed an answer on purpose (``trawl serve --perturb``).

    ``dropped_gold``: gold passages that are missing. ``distractors``: hits that no search found. ``delay_ms``: how long
    the request was held back.
    """

    dropped_gold: int = 0
    distractors: int = 0
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The outcome of one query: ``error`` if it failed, else ``hits``, best first (empty in a fused search).

    ``reranked`` is None without reranking. With ``rerank_error`` the reranker failed, which the request or the server
    allows, and the hits are in the order of the search. ``failed_indexes``: with ``allow_partial``, the errors of the
    indexes whose passages are missing, by their names. ``perturbed``: what the server did on purpose; None: nothing.
    ``short``: why there are fewer than ``k`` hits, such as ``"all"`` or ``"limit"``; None for a full list.
    """

    hits: tuple[Hit, ...] = ()
    embedded: Embedded | None = None
    certificate: Certificate | None = None
    error: TrawlQueryError | None = None
    reranked: Reranked | None = None
    rerank_error: TrawlQueryError | None = None
    failed_indexes: Mapping[str, TrawlQueryError] = field(default_factory=dict)
    perturbed: Perturbed | None = None
    short: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the query succeeded."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class Timings:
    """Time of each stage on the server, in milliseconds."""

    embed_ms: float
    search_ms: float
    fetch_ms: float
    rerank_ms: float


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """``results`` has one entry per query, in order. ``hits`` is the fused list, or None without ``fuse``."""

    index: str
    generation: str
    results: tuple[QueryResult, ...]
    hits: tuple[FusedHit, ...] | None
    timings: Timings
    mode: SearchMode
    """How the passages were ranked."""
    view: str | None = None
    """The views that limited the search, with commas in between; None if there were none."""
    short: str | None = None
    """With ``fuse``: why the fused list has fewer than ``k`` hits; None for a full list."""

    def raise_for_errors(self) -> SearchResponse:
        """Raises the error of the first query that failed; otherwise returns the response itself."""
        for result in self.results:
            if result.error is not None:
                raise result.error
        return self

    def __iter__(self) -> Iterator[QueryResult]:
        """The results, one per query."""
        return iter(self.results)


@dataclass(frozen=True, slots=True)
class Passage:
    """A row of the corpus, with ``contents`` added if it has none. ``same_id`` lists other rows with the same id."""

    row: int
    document: dict[str, Any]
    same_id: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document, joined from its passages. ``whole`` is False if it is longer than ``text``."""

    id: str
    url: str
    title: str
    text: str
    whole: bool
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages in the order of the call; None for an unknown id or row.

    ``documents``: with ``whole_documents``, the document of each passage; else None.
    """

    index: str
    generation: str
    passages: tuple[Passage | None, ...]
    documents: tuple[WholeDocument | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class ScoreQuery:
    """A query and the passages to score for it, by id and by row. ``answers``: golden answers to look for."""

    query: str
    ids: Sequence[PassageId] = ()
    rows: Sequence[int] = ()
    question: str | None = None
    answers: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class RankedScore:
    """A score as in a search, and its rank in the whole index, from 1.

    ``rank`` is None if it is larger than ``max_rank``, or if the passage has no word of the query.
    """

    score: float
    rank: int | None


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """The scores of a passage for a query; None for a mode that was not asked for or that the server lacks.

    ``answer``: whether a golden answer stands in it; None without ``answers``. ``index``: with several indexes, the
    index that has the passage, and whose scores and ranks these are; else None.
    """

    row: int
    id: PassageId | None = None
    dense: RankedScore | None = None
    bm25: RankedScore | None = None
    rerank: float | None = None
    answer: bool | None = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class QueryScores:
    """The outcome of one query: ``error`` if it failed, else its passages, ids first; None for an unknown one."""

    passages: tuple[ScoredPassage | None, ...] = ()
    error: TrawlQueryError | None = None

    @property
    def ok(self) -> bool:
        """Whether the query succeeded."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class ScoreResponse:
    """``results`` has one entry per query, in order."""

    index: str
    generation: str
    results: tuple[QueryScores, ...]
    timings: Timings


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The encoder of an index. The keys of ``prefixes`` and ``max_tokens`` are ``query`` and ``passage``.

    ``query_template`` says what is embedded of a ``Query`` if a call names no template.
    """

    name: str
    sha256: str
    prefixes: dict[str, str]
    max_tokens: dict[str, int | None]
    query_template: QueryTemplate


@dataclass(frozen=True, slots=True)
class Bm25Info:
    """The inverted indexes of an index. ``scored_by`` is the store whose own BM25 ranks; None: the server's."""

    fields: tuple[str, ...]
    analyser: str
    k1: float
    b: float
    scored_by: str | None = None


@dataclass(frozen=True, slots=True)
class RerankerInfo:
    """The reranker. ``sha256`` is None if it is a server of its own, ``max_tokens`` if it is not known."""

    name: str
    max_tokens: int | None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """The GPU that searches the vectors of an index, which take ``bytes`` of its memory.

    ``cuda`` is the version of CUDA of its driver. After ``failed``, the CPU searches.
    """

    name: str
    cuda: str
    bytes: int
    failed: bool


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of the server. ``generation`` changes whenever the index is rebuilt.

    ``rows`` count the ``deleted_rows`` too, which no search returns. ``modes`` are the ways to search it, the default
    first. ``columns`` are the names and types that filters can use. ``views`` are the views that a base URL with
    ``/views/NAME`` can name, with their numbers of passages, and ``view_sha256`` has hashes of their rows. ``model``
    and ``metric`` are None without vectors, ``bm25`` without inverted indexes, ``reranker`` if the server has none, and
    ``gpu`` if the CPU searches. Calls that name no index use the ``default`` one.
    """

    name: str
    rows: int
    dimension: int
    metric: str | None
    generation: str
    model: ModelInfo | None
    modes: tuple[SearchMode, ...]
    columns: Mapping[str, ColumnType]
    views: Mapping[str, int]
    default: bool
    deleted_rows: int
    bm25: Bm25Info | None
    reranker: RerankerInfo | None
    gpu: GpuInfo | None
    view_sha256: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Readiness:
    """``facts`` is the whole response: facts about the index if the server is ready, else the progress of its start."""

    ready: bool
    status: str
    facts: dict[str, Any]
