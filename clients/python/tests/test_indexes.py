"""``indexes()`` and ``groups()``: every field that the server describes has an attribute."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import unittest
from typing import Any

import httpx

from tests.scripted_server import ScriptedServer
from trawl_client import (
    AsyncTrawlClient,
    Bm25Info,
    GpuInfo,
    IndexInfo,
    ModelInfo,
    RerankerInfo,
    TrawlClient,
)

URL = os.environ["SERVER_URL"]
VIEW_ATTRIBUTES = {"name": "views", "passages": "views", "sha256": "view_sha256"}

WHOLE: dict[str, Any] = {
    "name": "wiki",
    "default": True,
    "rows": 10,
    "deletedRows": 2,
    "dimension": 4,
    "metric": "cosine",
    "modes": ["dense", "bm25", "hybrid"],
    "bm25": {"fields": ["title", "text"], "analyser": "english", "k1": 0.9, "b": 0.4, "scoredBy": "OpenSearch"},
    "columns": [{"name": "year", "type": "number"}],
    "views": [{"name": "old", "passages": 3, "sha256": "abc"}, {"name": "new", "passages": 5}],
    "generation": "g",
    "model": {
        "name": "e5",
        "sha256": "def",
        "prefixes": {"query": "query: ", "passage": "passage: "},
        "maxTokens": {"query": 256, "passage": None},
        "queryTemplate": "query",
    },
    "reranker": {"name": "cross", "maxTokens": 512, "sha256": "ghi"},
    "gpu": {"name": "NVIDIA A100", "cuda": "12.8", "bytes": 1234, "failed": False},
}
# Of words alone.
PLAIN: dict[str, Any] = {
    "name": "words",
    "default": False,
    "rows": 10,
    "deletedRows": 0,
    "dimension": 0,
    "metric": None,
    "modes": ["bm25"],
    "bm25": {"fields": ["contents"], "analyser": "english", "k1": 0.9, "b": 0.4},
    "columns": [],
    "views": [],
    "generation": "g",
    "model": None,
    "reranker": {"name": "http://rerank:8000", "maxTokens": None},
}


def snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


class TestIndexes(unittest.TestCase):
    """Both clients against scripted answers, and the types against the description of a real server."""

    def test_every_field_of_an_index_is_read(self) -> None:
        groups = [{"name": "all", "indexes": ["wiki", "words"]}]
        with ScriptedServer((200, {}, {"indexes": [WHOLE, PLAIN], "groups": groups})) as server:
            with TrawlClient(server.url) as client:
                whole, plain = client.indexes()
                self.assertEqual(client.groups(), {"all": ("wiki", "words")})

            async def ask() -> None:
                async with AsyncTrawlClient(server.url) as client_async:
                    self.assertEqual(await client_async.indexes(), [whole, plain])
                    self.assertEqual(await client_async.groups(), {"all": ("wiki", "words")})

            asyncio.run(ask())
        self.assertEqual(
            whole,
            IndexInfo(
                name="wiki",
                rows=10,
                dimension=4,
                metric="cosine",
                generation="g",
                model=ModelInfo(
                    "e5",
                    "def",
                    {"query": "query: ", "passage": "passage: "},
                    {"query": 256, "passage": None},
                    "query",
                ),
                modes=("dense", "bm25", "hybrid"),
                columns={"year": "number"},
                views={"old": 3, "new": 5},
                default=True,
                deleted_rows=2,
                bm25=Bm25Info(("title", "text"), "english", 0.9, 0.4, "OpenSearch"),
                reranker=RerankerInfo("cross", 512, "ghi"),
                gpu=GpuInfo("NVIDIA A100", "12.8", 1234, False),
                view_sha256={"old": "abc"},
            ),
        )
        self.assertEqual((plain.model, plain.gpu, plain.view_sha256), (None, None, {}))
        self.assertEqual(plain.bm25, Bm25Info(("contents",), "english", 0.9, 0.4))
        self.assertEqual(plain.reranker, RerankerInfo("http://rerank:8000", None))

    def test_every_field_that_the_server_describes_has_an_attribute(self) -> None:
        document = httpx.get(f"{URL}/docs/openapi.json").json()
        content = document["paths"]["/v1/indexes"]["get"]["responses"]["200"]["content"]["application/json"]
        reply = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        described = reply["properties"]["indexes"]["items"]["properties"]
        self.assertEqual(self.attributes(described), self.fields(IndexInfo) - {"view_sha256"})
        for name, type_ in (("model", ModelInfo), ("bm25", Bm25Info), ("reranker", RerankerInfo), ("gpu", GpuInfo)):
            value = described[name]
            (thing,) = [each for each in value.get("anyOf", [value]) if each["type"] == "object"]
            self.assertEqual(self.attributes(thing["properties"]), self.fields(type_), name)
        view = described["views"]["items"]["properties"]
        self.assertEqual(sorted(view), sorted(VIEW_ATTRIBUTES))
        # And the example above has every field.
        self.assertEqual(sorted(described), sorted(WHOLE))

    def attributes(self, properties: dict[str, Any]) -> set[str]:
        return {snake_case(name) for name in properties}

    def fields(self, type_: type[Any]) -> set[str]:
        return {each.name for each in dataclasses.fields(type_)}
