"""Shared by the baselines: reading vectors, and a protocol over stdin and stdout.

Requests and replies are JSON objects, one per line. If a request fails, the reply has the reason in "error".

    {"do": "load", "vectors": PATH, "queries": PATH}  ->  {"version": TEXT}
    {"do": "search", "first": N, "count": N, "k": N}  ->  {"ms": MILLISECONDS}
    {"do": "answer"}  ->  {"rows": [...], "scores": [...]}     of the last search, count x k in one list each, best first
    {"do": "memory"}  ->  {"residentBytes": BYTES}             peak since the last "memory", without the imports

"ms" is the time of the library's search call alone. Scores are inner products; larger is nearer.

embed_sentence_transformers.py defines the requests of encoders.
"""

import json
import os
import signal
import struct
import sys
import time

FLAT_HEADER_BYTES = 45
FLOAT16_HEADER_BYTES = 81
CHUNK_ROWS = 65_536


def serve(make_engine):
    """make_engine() imports its library and returns an object with load(path), search(queries, k) and a version."""
    serve_session(lambda threads: Session(make_engine, threads))


def serve_session(make_session):
    """make_session(threads) returns an object with a method for each request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process exits at the end of stdin
    threads = sys.argv[1]
    # The libraries read these when they are imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ[name] = threads
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print to stdout, which is for replies
    session = make_session(int(threads))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(session, request.pop("do"))(**request)
        except Exception as error:  # the command decides what a missing package or too little memory means
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


class Session:
    def __init__(self, make_engine, threads):
        self.make_engine = make_engine
        self.threads = threads

    def load(self, vectors, queries):
        self.engine = self.make_engine(self.threads)
        import numpy

        self.queries = numpy.load(queries)
        self.bytes_before = resident_bytes()
        self.engine.load(vectors)
        reset_peak()
        return {"version": self.engine.version}

    def search(self, first, count, k):
        queries = self.queries[first : first + count]
        start = time.perf_counter_ns()
        self.found = self.engine.search(queries, k)
        return {"ms": (time.perf_counter_ns() - start) / 1e6}

    def answer(self):
        rows, scores = self.found
        return {"rows": rows.ravel().tolist(), "scores": scores.astype("float64").ravel().tolist()}

    def memory(self):
        peak = peak_bytes()
        reset_peak()
        return {"residentBytes": max(0, peak - self.bytes_before)}


def read_header(path):
    """Rows, dimension, dtype and offset of the values in a FAISS flat (IxFI) or float16 (IxSQ) file."""
    with open(path, "rb") as file:
        fourcc, dimension, rows = struct.unpack("<4siq", file.read(16))
    if fourcc == b"IxFI":
        return rows, dimension, "<f4", FLAT_HEADER_BYTES
    if fourcc == b"IxSQ":
        return rows, dimension, "<f2", FLOAT16_HEADER_BYTES
    raise ValueError(f"{path} begins with {fourcc}, not with IxFI or IxSQ")


def read_chunks(path):
    """Yields the rows as float32, in chunks with the number of their first row."""
    import numpy

    rows, dimension, dtype, offset = read_header(path)
    with open(path, "rb") as file:
        file.seek(offset)
        for first in range(0, rows, CHUNK_ROWS):
            count = min(CHUNK_ROWS, rows - first)
            yield first, numpy.fromfile(file, dtype=dtype, count=count * dimension).reshape(count, dimension).astype("<f4", copy=False)


def read_rows(path):
    """All rows as one float32 array, aligned because numpy is slow on the unaligned rows of the file."""
    import numpy

    rows, dimension, _, _ = read_header(path)
    matrix = numpy.empty((rows, dimension), dtype=numpy.float32)
    for first, chunk in read_chunks(path):
        matrix[first : first + len(chunk)] = chunk
    return matrix


def resident_bytes():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def peak_bytes():
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def reset_peak():
    """Linux only. Elsewhere the peak counts from the start of the process."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass
