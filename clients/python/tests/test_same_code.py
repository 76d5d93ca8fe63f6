"""The two clients are written out, because type checkers and editors need both signatures. This keeps them equal."""

from __future__ import annotations

import unittest
from pathlib import Path

import trawl_client

FOLDER = Path(trawl_client.__file__).parent
# What differs in the asynchronous client, and what the other has instead.
DIFFERENCES = (
    (
        '"""The client for asyncio. It equals `_client.py` line by line, with awaits."""',
        '"""The client for threads. `_async_client.py` equals it line by line, with awaits."""',
    ),
    ("for any number of tasks and event loops", "for any number of threads"),
    ("import asyncio\n", ""),
    ("asyncio.sleep", "time.sleep"),
    ("AsyncTrawlClient", "TrawlClient"),
    ("httpx.AsyncClient", "httpx.Client"),
    ("async def ", "def "),
    ("await ", ""),
    ("aclose", "close"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
)


class SameCode(unittest.TestCase):
    def test_the_clients_differ_only_in_awaits_and_their_names(self) -> None:
        code = (FOLDER / "_async_client.py").read_text(encoding="utf-8")
        for theirs, ours in DIFFERENCES:
            self.assertIn(theirs, code)
            code = code.replace(theirs, ours)
        self.assertEqual(code.splitlines(), (FOLDER / "_client.py").read_text(encoding="utf-8").splitlines())
