"""A retrieval server like the one that Search-R1's users run: FastAPI, transformers, a flat faiss index.

It answers POST /retrieve (docs/dialects.md) and works like Search-R1's server: a synchronous endpoint, which the framework runs
on one of 40 threads; no lock and no queue; at most 512 queries encoded at once, padded to the longest; mean pooling and
normalised vectors; passages by row number. It differs in two points: it holds passages in memory as Python objects, which is
faster, and it honours return_scores: false.

    {"do": "load", "model": FOLDER, "vectors": PATH, "corpus": PATH, "prefix": TEXT, "maxTokens": N, "topk": N}
                                                          ->  {"version": TEXT, "port": N}
    {"do": "memory"}                                      ->  {"residentBytes": BYTES}

It listens on 127.0.0.1 once "load" is answered, and exits at the end of stdin.
"""

import json
import os
import socket
import threading
import time
from typing import List, Optional

from protocol import peak_bytes, reset_peak, resident_bytes, serve_session

BATCH = 512
BACKLOG = 4096


class Search:
    def __init__(self, threads, model, vectors, corpus, prefix, max_tokens, topk):
        import faiss
        import torch
        import transformers

        torch.set_num_threads(threads)
        faiss.omp_set_num_threads(threads)
        self.torch = torch
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        self.model = transformers.AutoModel.from_pretrained(model).eval()
        self.index = faiss.read_index(vectors)
        with open(corpus, encoding="utf-8", newline="\n") as file:
            self.rows = [json.loads(line) for line in file]
        if len(self.rows) != self.index.ntotal:
            raise ValueError(f"{len(self.rows)} passages, {self.index.ntotal} vectors")
        self.prefix = prefix
        self.max_tokens = max_tokens
        self.topk = topk
        self.version = f"faiss-cpu {faiss.__version__}, transformers {transformers.__version__}, torch {torch.__version__}"

    def encode(self, queries):
        texts = [self.prefix + query for query in queries]
        tokens = self.tokenizer(texts, max_length=self.max_tokens, padding=True, truncation=True, return_tensors="pt")
        with self.torch.no_grad():
            states = self.model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1)
        means = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return self.torch.nn.functional.normalize(means, dim=-1).numpy()

    def batch(self, queries, k):
        found = []
        for start in range(0, len(queries), BATCH):
            scores, rows = self.index.search(self.encode(queries[start : start + BATCH]), k)
            for query_rows, query_scores in zip(rows.tolist(), scores.tolist()):
                found.append([(self.rows[row], score) for row, score in zip(query_rows, query_scores)])
        return found


def make_app(search):
    import fastapi
    import pydantic

    class Request(pydantic.BaseModel):
        queries: List[str]
        topk: Optional[int] = None
        return_scores: bool = False

    app = fastapi.FastAPI()

    @app.post("/retrieve")
    def retrieve(request: Request):
        found = search.batch(request.queries, request.topk or search.topk)
        if request.return_scores:
            return {"result": [[{"document": row, "score": score} for row, score in hits] for hits in found]}
        return {"result": [[row for row, _ in hits] for hits in found]}

    return app


class Server:
    def __init__(self, threads):
        self.threads = threads

    def load(self, model, vectors, corpus, prefix, maxTokens, topk):
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        import fastapi
        import uvicorn

        self.bytes_before = resident_bytes()
        search = Search(self.threads, model, vectors, corpus, prefix, maxTokens, topk)
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(make_app(search), log_level="warning", access_log=False, backlog=BACKLOG)
        server = uvicorn.Server(config)
        threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
        while not server.started:
            time.sleep(0.05)
        reset_peak()
        version = f"fastapi {fastapi.__version__}, {search.version}"
        return {"version": version, "port": listening.getsockname()[1]}

    def memory(self):
        peak = peak_bytes()
        reset_peak()
        return {"residentBytes": max(0, peak - self.bytes_before)}


serve_session(Server)
