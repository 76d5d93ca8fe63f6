"""Uses a Trawl server with the official MCP client, as an assistant does."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

request = json.load(sys.stdin)


async def use(server):
    async with Client(server) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search", {"query": request["query"], "k": 3})
        results = found.structured_content["results"]
        assert json.loads(found.content[0].text) == found.structured_content
        fetched = await client.call_tool("fetch", {"id": results[0]["id"]})
        missing = await client.call_tool("fetch", {"id": "none"})
        return {
            "tools": tools,
            "results": [{"id": result["id"], "title": result["title"]} for result in results],
            "text": fetched.structured_content["text"],
            "missing": {"error": missing.is_error, "text": missing.content[0].text},
        }


async def main():
    command, *args = request["command"]
    return {
        "http": await use(request["url"]),
        "events": await use(sse_client(request["url"])),
        "stdio": await use(StdioServerParameters(command=command, args=args)),
    }


json.dump(asyncio.run(main()), sys.stdout)
