"""bm25s with numba: scores of all (term, row) pairs are computed when the index is built."""

import os

from bm25_protocol import serve_bm25


class Bm25s:
    def __init__(self):
        import bm25s
        import numba

        self.bm25s = bm25s
        self.version = f"bm25s {bm25s.__version__}, numba {numba.__version__}"

    def build(self, texts, folder):
        # k1 and b are fixed when the index is built: Trawl's defaults.
        index = self.bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
        index.index([text.split(" ") if text else [] for text in texts], show_progress=False)
        index.save(folder)
        return sum(entry.stat().st_size for entry in os.scandir(folder))

    def load(self, folder, k1, b):
        if (k1, b) != (0.9, 0.4):
            raise ValueError("bm25s was indexed with k1 0.9 and b 0.4")
        self.index = self.bm25s.BM25.load(folder)
        self.index.backend = "numba"
        self.rows = self.index.scores["num_docs"]

    def query(self, text):
        return text.split(" ") if text else []

    def search_all(self, queries, k, threads, end):
        # The library refuses a list of queries that are all empty.
        if not any(queries):
            return [[] for _ in queries]
        rows, scores = self.index.retrieve(queries, k=min(k, self.rows), n_threads=threads, show_progress=False, sorted=True)
        # Rows without a term of the query have the score 0.
        return [[hit for hit in zip(*hits) if hit[1] > 0] for hits in zip(rows.tolist(), scores.tolist())]


serve_bm25(Bm25s)
