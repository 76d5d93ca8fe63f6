"""Runs the search clients of RLinf's package, without the workers around them, which need Ray."""

import ast
import asyncio
import contextlib
import json
import logging
import os
import pathlib
import random
import sys
import threading
from typing import Any

import aiohttp
from omegaconf import DictConfig, OmegaConf

request = json.load(sys.stdin)
os.environ |= {"SERPER_API_KEY": "a-key-of-serper", "JINA_API_KEY": "a-key-of-jina"}
search = {"server_addr": request["address"], "topk": request["topk"]}
config = OmegaConf.create({"tools": {"search": search, "use_jina": True, "enable_cache": False}})


def client(path, name="AsyncSearchClient"):
    source = pathlib.Path(request["libraries"], path).read_text()
    # The address of Jina's reader stands in the code, and users change it there.
    tree = ast.parse(source.replace("https://r.jina.ai/", f"http://{request['address']}/"))
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    names = {"aiohttp": aiohttp, "asyncio": asyncio, "threading": threading, "Any": Any, "DictConfig": DictConfig}
    names |= {"os": os, "logging": logging, "random": random, "SERPER_STATS": {"num_requests": 0}}
    exec(compile(ast.Module([definition], []), path, "exec"), names)
    return names[name](config)


async def main():
    # The requests of RLinf's workers.
    body = {"queries": [request["query"]], "topk": request["topk"], "return_scores": False}
    (searched,) = await client("rlinf/agents/searchr1/search_tool_worker.py").query_async(body)
    wide = client("rlinf/agents/wideseek_r1/tools.py")
    (again,) = await wide.query_async(body)
    pages = await wide.access_async([*searched["urls"], "https://example.org/none"])
    await (await type(wide).get_session()).close()
    online = client("rlinf/agents/wideseek_r1/tools.py", "AsyncOnlineSearchClient")
    online.serper_server_addr = f"http://{request['address']}"
    (found,) = await online.query_async(body)
    read = await online.access_async([*found["urls"], "https://example.org/none"])
    await (await type(online).get_session()).close()
    return {
        "searched": searched,
        "again": again,
        "pages": [page["page"] for page in pages],
        "found": found,
        "read": [page["page"] for page in read],
    }


with contextlib.redirect_stdout(sys.stderr):
    answer = asyncio.run(main())
json.dump(answer, sys.stdout)
