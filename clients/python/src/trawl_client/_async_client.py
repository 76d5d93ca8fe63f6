"""The client for asyncio; the same as `_client.py` line by line, with awaits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import httpx

from . import _protocol
from ._calls import Call, Outcome, Result, Tries, http_options, no_answer
from ._errors import TrawlConnectionError
from ._protocol import QueryLike
from ._retry import Retry
from ._types import (
    Deduplication,
    Fusion,
    IndexInfo,
    Passage,
    PassageId,
    Readiness,
    SearchResponse,
    TextKind,
    TruncateSide,
)


class AsyncTrawlClient:
    """A client with a pool of connections; one serves any number of tasks of an event loop.

    ``timeout_s`` is the longest wait for a part of an answer (None: for ever); connecting has ten seconds. A busy
    server lets requests wait rather than refuse them, so it should be generous. 503 and lost connections are repeated
    as ``retry`` says. Errors are ``TrawlResponseError`` (the server refused) and ``TrawlConnectionError`` (no answer).
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout_s: float | None = 120.0,
        retry: Retry | None = None,
        max_connections: int = 256,
        verify: Any = True,
    ) -> None:
        self._retry = retry if retry is not None else Retry()
        self._http = httpx.AsyncClient(verify=verify, **http_options(url, api_key, timeout_s, max_connections))
        self._model: str | None = None

    async def search(
        self,
        queries: Sequence[QueryLike],
        *,
        index: str | None = None,
        k: int | None = None,
        min_score: float | None = None,
        exclude: Iterable[PassageId] = (),
        fuse: Fusion = "none",
        deduplicate: Deduplication | None = None,
        candidates: int | None = None,
        max_chars: int | None = None,
        documents: bool = False,
        truncate: TruncateSide = "tail",
    ) -> SearchResponse:
        """Searches for several queries at once; each a text, or a ``Query`` with the question it serves.

        ``exclude`` leaves out passages by id, such as those an agent has seen; the lists are filled from further down.
        ``fuse`` makes one list of all queries'. ``max_chars`` cuts each text to the part around the query's words. A
        query that fails does so alone, in its result. docs/http-api.md of the server has every field.
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
            truncate=truncate,
        )
        return await self._result(Call("/v1/search", _protocol.search_response, body))

    async def retrieve(
        self, queries: Sequence[str], *, topk: int | None = None, questions: Sequence[str | None] | None = None
    ) -> list[list[dict[str, Any]]]:
        """Search-R1's request: for each query its ``{"document", "score"}``, best first."""
        body = _protocol.retrieve_body(queries, topk, questions)
        return await self._result(Call("/retrieve", _protocol.result_lists, body))

    async def passage(self, passage_id: PassageId) -> Passage:
        """A passage by its id; ``TrawlResponseError`` with ``NOT_FOUND`` where there is none."""
        return await self._result(Call(_protocol.passage_path(passage_id), _protocol.passage))

    async def indexes(self) -> list[IndexInfo]:
        """The indexes that the server has."""
        return await self._result(Call("/v1/indexes", _protocol.indexes))

    async def embed(
        self, texts: Sequence[str], *, kind: TextKind = "query", model: str | None = None
    ) -> list[list[float]]:
        """Vectors of texts, with the prefix and the limit of queries or of passages. ``model``: the only one."""
        vectors: list[list[float]] = []
        for batch in _protocol.embedding_batches(texts):
            name = model if model is not None else await self._only_model()
            body = _protocol.embeddings_body(batch, name, kind)
            vectors += await self._result(Call("/v1/embeddings", _protocol.vectors, body))
        return vectors

    async def ready(self) -> Readiness:
        """Whether the server answers requests, asked once."""
        try:
            return _protocol.readiness(await self._http.get("/readyz"))
        except httpx.TransportError as error:
            raise no_answer(error) from error

    async def wait_until_ready(self, timeout_s: float = 600.0, *, poll_s: float = 0.5) -> Readiness:
        """Waits until the server is ready, also for one that does not listen yet, or ``TrawlConnectionError``."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                readiness = await self.ready()
                if readiness.ready:
                    return readiness
                last = str(readiness.facts.get("progress", readiness.status))
            except TrawlConnectionError as error:
                last = str(error)
            if time.monotonic() + poll_s > deadline:
                raise TrawlConnectionError(f"{self._http.base_url} is not ready after {timeout_s:g} s: {last}")
            await asyncio.sleep(poll_s)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncTrawlClient:
        """The client, closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        await self.aclose()

    async def _only_model(self) -> str:
        if self._model is None:
            self._model = _protocol.the_only_model(await self.indexes())
        return self._model

    async def _result(self, call: Call[Result]) -> Result:
        tries = Tries(self._retry)
        while True:
            outcome: Outcome
            try:
                outcome = await self._http.request(**call.request)
            except httpx.TransportError as error:
                outcome = error
            wait_s = tries.wait_s(outcome)
            if wait_s is None:
                return call.result(outcome)
            await asyncio.sleep(wait_s)
