"""A retriever for FlashRAG's pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, overload

from ._client import TrawlClient
from ._types import Hit, Query

Document = dict[str, Any]


class _Config(Protocol):
    """FlashRAG's Config, or a dict."""

    def __getitem__(self, key: str, /) -> Any:
        """The value of a key."""
        ...


class FlashRAGRetriever:
    """The retriever interface of FlashRAG's pipelines, backed by a Trawl server.

    Pass it to a pipeline as ``retriever``. ``client`` is a client, or the URL or URLs for one. Documents are rows of
    the corpus with ``contents``; a larger score is nearer. If ``num`` is None, it is ``topk``. A query that fails
    raises its ``TrawlQueryError``.
    """

    def __init__(
        self,
        client: TrawlClient | str | Sequence[str],
        *,
        topk: int = 5,
        batch_size: int = 256,
        index: str | None = None,
    ) -> None:
        if topk < 1 or batch_size < 1:
            raise ValueError("topk and batch_size must be at least 1.")
        self.client = client if isinstance(client, TrawlClient) else TrawlClient(client)
        self.topk = topk
        self.batch_size = batch_size
        self.index = index

    @classmethod
    def from_config(cls, config: _Config, client: TrawlClient | str | Sequence[str] | None = None) -> FlashRAGRetriever:
        """Reads FlashRAG's ``retrieval_topk``, ``retrieval_batch_size`` and ``remote_retriever_url``."""
        target = client if client is not None else _value(config, "remote_retriever_url")
        if target is None:
            raise ValueError("The configuration has no remote_retriever_url; set it to the server's URL.")
        return cls(
            target,
            topk=int(_value(config, "retrieval_topk") or 5),
            batch_size=int(_value(config, "retrieval_batch_size") or 256),
        )

    @overload
    def search(
        self, query: str, num: int | None = ..., return_score: Literal[False] = ..., *, question: str | None = ...
    ) -> list[Document]: ...

    @overload
    def search(
        self, query: str, num: int | None = ..., *, return_score: Literal[True], question: str | None = ...
    ) -> tuple[list[Document], list[float]]: ...

    @overload
    def search(
        self, query: str, num: int | None, return_score: bool, *, question: str | None = ...
    ) -> list[Document] | tuple[list[Document], list[float]]: ...

    def search(
        self, query: str, num: int | None = None, return_score: bool = False, *, question: str | None = None
    ) -> list[Document] | tuple[list[Document], list[float]]:
        """The documents of one query, with their scores if ``return_score``."""
        (hits,) = self._hits([query], num, None if question is None else [question])
        documents = [_document(hit) for hit in hits]
        return (documents, [hit.score for hit in hits]) if return_score else documents

    @overload
    def batch_search(
        self,
        query: Sequence[str] | str,
        num: int | None = ...,
        return_score: Literal[False] = ...,
        *,
        questions: Sequence[str | None] | None = ...,
    ) -> list[list[Document]]: ...

    @overload
    def batch_search(
        self,
        query: Sequence[str] | str,
        num: int | None = ...,
        *,
        return_score: Literal[True],
        questions: Sequence[str | None] | None = ...,
    ) -> tuple[list[list[Document]], list[list[float]]]: ...

    @overload
    def batch_search(
        self,
        query: Sequence[str] | str,
        num: int | None,
        return_score: bool,
        *,
        questions: Sequence[str | None] | None = ...,
    ) -> list[list[Document]] | tuple[list[list[Document]], list[list[float]]]: ...

    def batch_search(
        self,
        query: Sequence[str] | str,
        num: int | None = None,
        return_score: bool = False,
        *,
        questions: Sequence[str | None] | None = None,
    ) -> list[list[Document]] | tuple[list[list[Document]], list[list[float]]]:
        """The documents of each query, with scores if ``return_score``. ``questions``: the question of each query."""
        lists = self._hits(query, num, questions)
        documents = [[_document(hit) for hit in hits] for hits in lists]
        return (documents, [[hit.score for hit in hits] for hits in lists]) if return_score else documents

    def batch_search_return_ids(
        self, query: Sequence[str] | str, num: int | None = None
    ) -> tuple[list[list[Document]], list[list[int]]]:
        """The documents of each query and their row numbers. Agentic-R makes training data with it."""
        lists = self._hits(query, num, None)
        return [[_document(hit) for hit in hits] for hits in lists], [[hit.row for hit in hits] for hits in lists]

    def _save_cache(self) -> None:
        """Does nothing, because the server has a cache. Pipelines call it if the configuration enables a cache."""

    def _hits(
        self, query: Sequence[str] | str, num: int | None, questions: Sequence[str | None] | None
    ) -> list[tuple[Hit, ...]]:
        texts = [query] if isinstance(query, str) else list(query)
        if questions is not None and len(questions) != len(texts):
            raise ValueError(
                f"Expected one question (or None) per query, got {len(texts)} queries and {len(questions)} questions."
            )
        per_query: Iterable[str | None] = [None] * len(texts) if questions is None else questions
        wanted = [
            text if question is None else Query(text, question) for text, question in zip(texts, per_query, strict=True)
        ]
        lists: list[tuple[Hit, ...]] = []
        for start in range(0, len(wanted), self.batch_size):
            batch = wanted[start : start + self.batch_size]
            found = self.client.search(batch, k=self.topk if num is None else num, documents=True, index=self.index)
            lists += [result.hits for result in found.raise_for_errors()]
        return lists


def _document(hit: Hit) -> Document:
    return {**(hit.document or {}), "contents": hit.text}


def _value(config: _Config, key: str) -> Any:
    # FlashRAG's Config returns None for a missing key; a dict raises.
    if isinstance(config, Mapping):
        return config.get(key)
    return config[key]
