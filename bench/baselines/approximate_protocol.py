"""Shared by the graphs for approximate search: building, and searching query by query or all at once.

    {"do": "load", "vectors": PATH, "queries": PATH, "neighbours": N, "effort": N}  ->  {"version": TEXT, "buildSeconds": N}
    {"do": "lone", "count": N, "k": N, "effort": N}   ->  {"times": [MILLISECONDS, ...]}    of the first queries, one a call
    {"do": "batch", "count": N, "k": N, "effort": N}  ->  {"ms": MILLISECONDS}              the first queries in one call
    {"do": "answer"}  ->  {"rows": [...]}             of the last "lone" or "batch", count x k, best first, -1 for a missing row
    {"do": "memory"}  ->  {"residentBytes": BYTES}    peak since the last "memory", without the imports

vectors: a FAISS file; queries: .npy. neighbours: edges of a node (M). effort: candidates that a step keeps, when the graph is
built (efConstruction) and when it is searched (efSearch). Only the library's calls are timed.
"""

import time

from protocol import peak_bytes, read_rows, reset_peak, resident_bytes, serve_session


def serve_graph(make_engine):
    """make_engine(threads) imports its library and returns an object with build(matrix, neighbours, effort), prepare(effort), search(queries, k) and a version."""
    serve_session(lambda threads: Session(make_engine, threads))


class Session:
    def __init__(self, make_engine, threads):
        self.make_engine = make_engine
        self.threads = threads

    def load(self, vectors, queries, neighbours, effort):
        import numpy

        self.numpy = numpy
        self.engine = self.make_engine(self.threads)
        self.queries = numpy.load(queries)
        self.bytes_before = resident_bytes()
        matrix = read_rows(vectors)
        start = time.perf_counter()
        self.engine.build(matrix, neighbours, effort)
        seconds = time.perf_counter() - start
        del matrix
        reset_peak()
        return {"version": self.engine.version, "buildSeconds": seconds}

    def lone(self, count, k, effort):
        self.engine.prepare(effort)
        times, found = [], []
        for i in range(count):
            query = self.queries[i : i + 1]
            start = time.perf_counter_ns()
            rows = self.engine.search(query, k)
            times.append((time.perf_counter_ns() - start) / 1e6)
            found.append(self.numpy.asarray(rows).reshape(1, -1))
        self.found = self.numpy.concatenate(found)
        return {"times": times}

    def batch(self, count, k, effort):
        self.engine.prepare(effort)
        start = time.perf_counter_ns()
        rows = self.engine.search(self.queries[:count], k)
        ms = (time.perf_counter_ns() - start) / 1e6
        self.found = self.numpy.asarray(rows).reshape(count, -1)
        return {"ms": ms}

    def answer(self):
        return {"rows": self.found.astype("int64").ravel().tolist()}

    def memory(self):
        peak = peak_bytes()
        reset_peak()
        return {"residentBytes": max(0, peak - self.bytes_before)}
