"""Exact retrieval for search agents: the Trawl program, servers for notebooks and tests, and the client.

``serve`` starts a server for a ``with`` block; ``run`` runs any command of the program. Everything of ``trawl_client``
is here too, as a copy of its own: the package trawl-client may be installed beside this one.
``trawl_retrieval.langchain`` and ``trawl_retrieval.llama_index`` have retrievers for these frameworks,
``trawl_retrieval.mteb`` a search model for MTEB; ``FlashRAGRetriever`` is the one for FlashRAG.
"""

from ._client import *  # noqa: F403
from ._client import __all__ as _client_names
from ._program import CommandError, program, run
from ._serve import Server, serve

__all__ = [*_client_names, "CommandError", "Server", "program", "run", "serve"]
__version__ = "0.1.0"
