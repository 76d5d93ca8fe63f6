"""A retriever for LlamaIndex (`pip install trawl-retrieval[llama-index]`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ._client import AsyncTrawlClient, Hit, TrawlClient


class TrawlRetriever(BaseRetriever):
    """Finds the ``k`` nearest passages of a Trawl server at ``url``.

    ``options`` are further keyword arguments of ``TrawlClient.search``, such as ``mode="hybrid"``. A node's metadata
    has the columns of its corpus row and ``row``; a larger score is nearer. A query that fails raises its
    ``TrawlQueryError``.
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        k: int = 5,
        index: str | None = None,
        api_key: str | None = None,
        **options: Any,
    ) -> None:
        """Sends nothing: the first retrieval connects."""
        self._url = url
        self._api_key = api_key
        self._search: dict[str, Any] = {**options, "k": k, "index": index, "documents": True}
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with TrawlClient(self._url, api_key=self._api_key) as client:
            found = client.search([query_bundle.query_str], **self._search)
        (result,) = found.raise_for_errors()
        return [_node(hit) for hit in result.hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        client = AsyncTrawlClient(self._url, api_key=self._api_key)
        try:
            found = await client.search([query_bundle.query_str], **self._search)
        finally:
            await client.aclose()
        (result,) = found.raise_for_errors()
        return [_node(hit) for hit in result.hits]


def _node(hit: Hit) -> NodeWithScore:
    columns = {name: value for name, value in (hit.document or {}).items() if name not in ("contents", "text", "id")}
    identity = str(hit.row if hit.id is None else hit.id)
    node = TextNode(id_=identity, text=hit.text, metadata={**columns, "row": hit.row})
    return NodeWithScore(node=node, score=hit.score)
