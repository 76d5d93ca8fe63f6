"""A retriever for LangChain (`pip install trawl-retrieval[langchain]`)."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from ._client import AsyncTrawlClient, Hit, TrawlClient


class TrawlRetriever(BaseRetriever):
    """Finds the ``k`` nearest passages of a Trawl server at ``url``.

    ``options`` are further keyword arguments of ``TrawlClient.search``, such as ``{"mode": "hybrid"}``. A document's
    metadata has the columns of its corpus row, ``score`` (larger is nearer), ``row`` and ``id``. A query that fails
    raises its ``TrawlQueryError``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    url: str | list[str] = "http://127.0.0.1:8000"
    k: int = 5
    index: str | None = None
    api_key: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with TrawlClient(self.url, api_key=self.api_key) as client:
            found = client.search([query], k=self.k, index=self.index, documents=True, **self.options)
        (result,) = found.raise_for_errors()
        return [_document(hit) for hit in result.hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        client = AsyncTrawlClient(self.url, api_key=self.api_key)
        try:
            found = await client.search([query], k=self.k, index=self.index, documents=True, **self.options)
        finally:
            await client.aclose()
        (result,) = found.raise_for_errors()
        return [_document(hit) for hit in result.hits]


def _document(hit: Hit) -> Document:
    identity = None if hit.id is None else str(hit.id)
    columns = {name: value for name, value in (hit.document or {}).items() if name not in ("contents", "text")}
    metadata = {**columns, "id": hit.id, "row": hit.row, "score": hit.score}
    return Document(page_content=hit.text, metadata=metadata, id=identity)
