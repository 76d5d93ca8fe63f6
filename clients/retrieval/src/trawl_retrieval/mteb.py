"""A search model for MTEB (`pip install trawl-retrieval[mteb]`)."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mteb.models import ModelMeta

from ._client import TrawlClient
from ._program import run
from ._serve import serve

_BATCH = 256


class TrawlSearch:
    """Retrieval by Trawl for ``mteb.evaluate``: MTEB's ``SearchProtocol``.

    For each corpus, ``trawl index`` builds an index in a temporary folder, and a server answers the queries of the
    task. ``model`` is a model folder; default: the small encoder that ships with Trawl. ``mode`` is ``"dense"``,
    ``"bm25"`` or ``"hybrid"``. ``index_options`` are further options of ``trawl index``. ``name`` is what the results
    are filed under, in the form ``"organization/model"``.

    A document's title, if it has one, is embedded as Trawl embeds titles, not as MTEB's encoders do. MTEB's reranking
    tasks, which give each query its own list of documents, raise ``NotImplementedError``.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        mode: str = "dense",
        index_options: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        """Starts nothing: the first task builds its index."""
        self._mode = mode
        self._index_options = [*index_options]
        if model is not None:
            self._index_options += ["--model", os.fspath(model)]
        if mode != "dense":
            self._index_options.append("--bm25")
        self._name = name or f"trawl/{'token-average-256' if model is None else Path(model).name}-{mode}"
        self._open = ExitStack()
        self._client: TrawlClient | None = None
        atexit.register(self.close)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """What MTEB writes beside the results; what is not known of the encoder is None."""
        unknown = {name: None for name, field in ModelMeta.model_fields.items() if field.is_required()}
        return ModelMeta.model_validate({**unknown, "name": self._name, "revision": "unknown", "framework": []})

    def index(self, corpus: Iterable[Mapping[str, Any]], **_others: Any) -> None:
        """Builds the index of a corpus and starts its server. Those of the corpus before are removed."""
        self._end()
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="trawl-mteb-")))
        with open(folder / "corpus.jsonl", "w", encoding="utf-8") as file:
            for document in corpus:
                file.write(json.dumps(_passage(document), ensure_ascii=False) + "\n")
        run("index", folder / "corpus.jsonl", "--out", folder / "index", *self._index_options)
        server = self._open.enter_context(serve(folder / "index", options=["--mode", self._mode]))
        self._client = server.client

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_others: Any,
    ) -> dict[str, dict[str, float]]:
        """Finds the ``top_k`` best documents of each query, with their scores. A query that fails raises its error."""
        if top_ranked is not None:
            raise NotImplementedError("TrawlSearch finds documents; MTEB's reranking tasks need an encoder.")
        if self._client is None:
            raise RuntimeError("There is no index: call index(corpus, ...) before search(queries, ...).")
        asked = [(str(query["id"]), str(query["text"])) for query in queries]
        found: dict[str, dict[str, float]] = {}
        for start in range(0, len(asked), _BATCH):
            batch = asked[start : start + _BATCH]
            results = self._client.search([text for _, text in batch], k=top_k).raise_for_errors()
            for (identity, _), result in zip(batch, results, strict=True):
                found[identity] = {str(hit.id): hit.score for hit in result.hits}
        return found

    def close(self) -> None:
        """Ends the server and removes the index. Python does so when it ends."""
        self._end()
        atexit.unregister(self.close)

    def _end(self) -> None:
        self._client = None
        self._open.close()
        self._open = ExitStack()


def _passage(document: Mapping[str, Any]) -> dict[str, str]:
    title, text = document.get("title"), str(document["text"])
    identity = str(document["id"])
    return {"id": identity, "title": str(title), "text": text} if title else {"id": identity, "contents": text}
