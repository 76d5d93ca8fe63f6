"""The client for threads. `_async_client.py` equals it line by line, with awaits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import httpx

from . import _protocol, _score_protocol
from ._calls import Call, Outcome, ReadyCheck, Result, Tries
from ._connections import Connections, Settings
from ._errors import TrawlConnectionError
from ._protocol import QueryLike
from ._retry import Retry
from ._servers import base_urls
from ._types import (
    Bm25Parameters,
    Deduplication,
    DocumentCut,
    Filter,
    Fusion,
    HybridSettings,
    IndexInfo,
    InputType,
    Origin,
    Passage,
    PassageId,
    Passages,
    QueryTemplate,
    Readiness,
    RerankParameters,
    ScoreMode,
    ScoreQuery,
    ScoreResponse,
    SearchMode,
    SearchResponse,
    TruncateSide,
)


class TrawlClient:
    """A client with a connection pool, for any number of threads.

    ``url`` is the base URL of a server, or those of several servers with the same index, as a list or separated by
    commas. Calls go to the servers in round-robin order, and a server that fails is set aside for a while (``Retry``).

    ``timeout_s`` is the longest wait for the next bytes of a response (None: no limit). Set a high limit, because a
    busy server lets requests wait. The limit for connecting is ten seconds. ``retry`` sets how a call is repeated after
    a 503 or a lost connection. Errors: ``TrawlResponseError`` if the server refuses the request,
    ``TrawlConnectionError`` if no server answers.

    A forked process opens its own connections. A client can be copied and pickled, unless ``verify`` is an SSLContext.
    A copy or pickle contains the API key. The copy is open even if the original was closed.
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout_s: float | None = 120.0,
        retry: Retry | None = None,
        max_connections: int = 256,
        verify: Any = True,
    ) -> None:
        retry = retry if retry is not None else Retry()
        self.__setstate__(Settings(base_urls(url), api_key, timeout_s, retry, max_connections, verify))

    def __getstate__(self) -> Settings:
        """The arguments of the client. A copy, in this or in another process, opens its own connections."""
        return self._settings

    def __setstate__(self, settings: Settings) -> None:
        """Makes a client with these arguments."""
        self._settings = settings
        self._connections = Connections(settings, httpx.Client)
        self._model: str | None = None

    def search(
        self,
        queries: Sequence[QueryLike],
        *,
        index: str | Sequence[str] | None = None,
        k: int | None = None,
        min_score: float | None = None,
        exclude: Iterable[PassageId] = (),
        fuse: Fusion = "none",
        deduplicate: Deduplication | None = None,
        candidates: int | None = None,
        max_chars: int | None = None,
        documents: bool = False,
        allow_partial: bool = False,
        template: QueryTemplate | None = None,
        truncate: TruncateSide | None = None,
        mode: SearchMode | None = None,
        bm25: Bm25Parameters | None = None,
        hybrid: HybridSettings | None = None,
        explain: bool = False,
        filter: Filter | None = None,
        rerank: bool | RerankParameters | None = None,
        record: Origin | None = None,
    ) -> SearchResponse:
        """Searches for several queries at once. A query is a text, or a ``Query`` with its question and history.

        ``exclude`` omits passages by id, for example those that an agent has seen; the next best passages take their
        places. ``fuse`` merges the lists of all queries into one. ``max_chars`` shortens each text to the part around
        the query's words. ``mode`` ranks by vectors (``"dense"``), by words (``"bm25"``, with ``bm25`` for ``k1``,
        ``b``, ``profile``, ``weights``, ``tieBreaker`` or ``order``) or by both (``"hybrid"``, with ``hybrid`` for
        ``fusion``, ``rrfK``, ``denseWeight``, ``bm25Weight`` or ``depth``). ``explain`` adds the terms of each score,
        not with mode ``"dense"``. ``filter`` limits the search to passages by their columns: an expression such as
        ``"source = 'wiki' and date >= 2020-01-01"``, or its JSON form. ``rerank`` orders the passages by a reranker:
        True, or ``depth``, ``model`` and ``allowFailure``; False switches off the server's. ``template`` names the
        parts of a ``Query`` to embed. A list as ``index`` searches several indexes as one, with ``allow_partial`` also
        if some of them fail. ``record`` says where the queries come from, for ``--record`` of the server. A query that
        fails does not fail the others: its result has the error.
        docs/http-api.md of the server describes every field.
        """
        body = _protocol.search_body(
            queries,
            index=index,
            k=k,
            min_score=min_score,
            exclude=exclude,
            fuse=fuse,
            deduplicate=deduplicate,
            candidates=candidates,
            max_chars=max_chars,
            documents=documents,
            allow_partial=allow_partial,
            template=template,
            truncate=truncate,
            mode=mode,
            bm25=bm25,
            hybrid=hybrid,
            explain=explain,
            filter=filter,
            rerank=rerank,
            record=record,
        )
        return self._result(Call("/v1/search", _protocol.search_response, body))

    def retrieve(
        self,
        queries: Sequence[str],
        *,
        topk: int | None = None,
        questions: Sequence[str | None] | None = None,
        histories: Sequence[Sequence[str] | None] | None = None,
        template: QueryTemplate | None = None,
        record: Origin | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Sends Search-R1's request. Returns a list of ``{"document", "score"}`` for each query, best first."""
        body = _protocol.retrieve_body(queries, topk, questions, histories, template, record)
        return self._result(Call("/retrieve", _protocol.result_lists, body))

    def passage(self, passage_id: PassageId) -> Passage:
        """The passage with this id; ``TrawlResponseError`` with the code ``NOT_FOUND`` if no passage has it."""
        return self._result(Call(_protocol.passage_path(passage_id), _protocol.passage))

    def passages(
        self,
        ids: Iterable[PassageId] = (),
        *,
        rows: Iterable[int] = (),
        whole_documents: bool = False,
        cut: DocumentCut | None = None,
        index: str | None = None,
    ) -> Passages:
        """Many passages by id and by row. ``whole_documents`` adds the documents that they belong to.

        ``cut``: the beginnings of the documents, with at most this number of ``words``, ``characters`` or ``tokens``.
        """
        body = _score_protocol.passages_body(ids, rows, whole_documents, cut, index)
        return self._result(Call("/v1/passages", _score_protocol.passages, body))

    def score(
        self,
        queries: Sequence[ScoreQuery],
        *,
        max_rank: int = 1000,
        modes: Sequence[ScoreMode] | None = None,
        bm25: Bm25Parameters | None = None,
        truncate: TruncateSide | None = None,
        index: str | Sequence[str] | None = None,
    ) -> ScoreResponse:
        """The scores of given passages, their exact ranks up to ``max_rank``, and whether they have an answer.

        ``modes``: which scores, by default those that the index has. ``max_rank=0`` finds no ranks. A query that fails
        does not fail the others: its result has the error. ``index`` may name several indexes, whose passages are then
        named by ids.
        """
        body = _score_protocol.score_body(
            queries, index=index, modes=modes, max_rank=max_rank, bm25=bm25, truncate=truncate
        )
        return self._result(Call("/v1/score", _score_protocol.score_response, body))

    def indexes(self) -> list[IndexInfo]:
        """The server's indexes."""
        return self._result(Call("/v1/indexes", _protocol.indexes))

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The groups of the server, whose names as ``index`` search several indexes as one, with their indexes."""
        return self._result(Call("/v1/indexes", _protocol.groups))

    def embed(
        self,
        texts: Sequence[str],
        *,
        input_type: InputType = "query",
        model: str | None = None,
    ) -> list[list[float]]:
        """Embeds texts with the prefix and the token limit of queries or of passages.

        ``model`` may be omitted if the server has one encoder.
        """
        vectors: list[list[float]] = []
        for batch in _protocol.embedding_batches(texts):
            name = model if model is not None else self._only_model()
            body = _protocol.embeddings_body(batch, name, input_type)
            vectors += self._result(Call("/v1/embeddings", _protocol.vectors, body))
        return vectors

    def ready(self) -> Readiness:
        """Whether a server is ready, without retries. The facts are those of the first ready server."""
        check = ReadyCheck(self._connections.servers)
        for url in check.urls:
            if check.is_ready(url, self._get(f"{url}/readyz")):
                break
        return check.result()

    def wait_until_ready(self, timeout_s: float = 600.0, *, poll_s: float = 0.5) -> Readiness:
        """Waits until a server is ready, even if none listens yet; ``TrawlConnectionError`` after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                readiness = self.ready()
                if readiness.ready:
                    return readiness
                last = str(readiness.facts.get("progress", readiness.status))
            except TrawlConnectionError as error:
                last = str(error)
            if time.monotonic() + poll_s > deadline:
                servers = self._connections.servers
                raise TrawlConnectionError(f"{servers} is not ready after {timeout_s:g} s: {last}", servers.urls[-1])
            time.sleep(poll_s)

    def close(self) -> None:
        """Closes the connections."""
        pool = self._connections.close()
        if pool is not None:
            pool.close()

    def __enter__(self) -> TrawlClient:
        """Returns the client, which is closed at the end of the block."""
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        self.close()

    def _only_model(self) -> str:
        if self._model is None:
            self._model = _protocol.the_only_model(self.indexes())
        return self._model

    def _get(self, url: str) -> Outcome:
        try:
            return self._connections.pool().get(url)
        except httpx.TransportError as error:
            return error

    def _result(self, call: Call[Result]) -> Result:
        tries = Tries(call, self._connections.servers, self._settings.retry)
        pool = self._connections.pool()
        while True:
            url = tries.next_url()
            outcome: Outcome
            try:
                outcome = pool.request(**call.request(url))
            except httpx.TransportError as error:
                outcome = error
            wait_s = tries.wait_s(url, outcome)
            if wait_s is None:
                return tries.result()
            time.sleep(wait_s)
