"""Runs the search clients of RLinf's package, without the workers around them, which need Ray."""

import ast
import asyncio
import contextlib
import json
import pathlib
import sys
import threading
from typing import Any

import aiohttp
from omegaconf import DictConfig, OmegaConf

request = json.load(sys.stdin)
config = OmegaConf.create({"tools": {"search": {"server_addr": request["address"], "topk": request["topk"]}}})


def client(path):
    tree = ast.parse(pathlib.Path(request["libraries"], path).read_text())
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "AsyncSearchClient")
    names = {"aiohttp": aiohttp, "asyncio": asyncio, "threading": threading, "Any": Any, "DictConfig": DictConfig}
    exec(compile(ast.Module([definition], []), path, "exec"), names)
    return names["AsyncSearchClient"](config)


async def main():
    # The requests of RLinf's workers.
    body = {"queries": [request["query"]], "topk": request["topk"], "return_scores": False}
    (searched,) = await client("rlinf/agents/searchr1/search_tool_worker.py").query_async(body)
    wide = client("rlinf/agents/wideseek_r1/tools.py")
    (again,) = await wide.query_async(body)
    pages = await wide.access_async([*searched["urls"], "https://example.org/none"])
    await (await type(wide).get_session()).close()
    return {"searched": searched, "again": again, "pages": [page["page"] for page in pages]}


with contextlib.redirect_stdout(sys.stderr):
    answer = asyncio.run(main())
json.dump(answer, sys.stdout)
