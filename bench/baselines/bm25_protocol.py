"""Shared by the BM25 baselines: the files, and the requests over stdin and stdout (protocol.py; Lucene.java has the same).

A file of texts has for each text its length in bytes as a little-endian 32-bit number, and UTF-8.

    {"do": "build", "analyser": NAME, "texts": PATH, "folder": PATH}            ->  {"seconds": N, "bytes": N}
    {"do": "load", "analyser": NAME, "folder": PATH, "k1": N, "b": N}           ->  {"version": TEXT, "ms": N}
    {"do": "queries", "texts": PATH}                                            ->  {"ms": N}
    {"do": "lone", "k": N, "limitMs": N}                                        ->  {"times": [N, ...]}
    {"do": "batch", "k": N, "threads": N, "limitMs": N}                         ->  {"queries": N, "ms": N}
    {"do": "answer", "out": PATH}                                               ->  {"ms": N}

The texts and queries of the Python baselines are terms separated by spaces, which Trawl's analyser made, so all engines index
the same terms; "analyser" is ignored there. "lone" searches query by query until limitMs have passed, and replies with the
milliseconds of each search. "batch" searches all queries, or as many as it starts within limitMs (bm25s: all), and replies with
their number and the wall time. "queries" replies with the time of analysis. "answer" writes the hits of the last search: for each query their number, then row and float32 score of each.
"""

import struct
import time

from protocol import serve_session


def read_texts(path):
    with open(path, "rb") as file:
        while head := file.read(4):
            yield file.read(struct.unpack("<I", head)[0]).decode()


def serve_bm25(make_engine):
    """make_engine() imports its library and returns an object with build, load, search_all(queries, k, threads, end) and a version."""
    serve_session(lambda threads: Session(make_engine))


class Session:
    def __init__(self, make_engine):
        self.engine = make_engine()

    def build(self, analyser, texts, folder):
        start = time.perf_counter()
        size = self.engine.build(read_texts(texts), folder)
        return {"seconds": time.perf_counter() - start, "bytes": size}

    def load(self, analyser, folder, k1, b):
        start = time.perf_counter()
        self.engine.load(folder, k1, b)
        return {"version": self.engine.version, "ms": (time.perf_counter() - start) * 1000}

    def queries(self, texts):
        self.list = [self.engine.query(text) for text in read_texts(texts)]
        return {"ms": 0}

    def lone(self, k, limitMs):
        self.found = []
        times = []
        start = time.perf_counter()
        for query in self.list:
            before = time.perf_counter()
            if (before - start) * 1000 >= limitMs:
                break
            self.found += self.engine.search_all([query], k, 1, None)
            times.append((time.perf_counter() - before) * 1000)
        return {"times": times}

    def batch(self, k, threads, limitMs):
        start = time.perf_counter()
        self.found = self.engine.search_all(self.list, k, threads, start + limitMs / 1000)
        return {"queries": len(self.found), "ms": (time.perf_counter() - start) * 1000}

    def answer(self, out):
        with open(out, "wb") as file:
            for hits in self.found:
                file.write(struct.pack("<I", len(hits)))
                for row, score in hits:
                    file.write(struct.pack("<If", row, score))
        return {"ms": 0}
