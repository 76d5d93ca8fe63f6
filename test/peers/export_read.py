"""Opens an exported index with FAISS and numpy. Input: {"faiss", "npy", "queries": numbers, row-major, "k"}."""

import hashlib
import json
import sys

import faiss
import numpy as np

request = json.load(sys.stdin)
index = faiss.read_index(request["faiss"])
matrix = np.load(request["npy"])
queries = np.array(request["queries"], dtype="<f4").reshape(-1, index.d)
scores, labels = index.search(queries, request["k"])
json.dump(
    {
        "className": type(index).__name__,
        "rows": index.ntotal,
        "dimension": index.d,
        "faissSha256": hashlib.sha256(index.reconstruct_n(0, index.ntotal).tobytes()).hexdigest(),
        "npySha256": hashlib.sha256(matrix.astype("<f4").tobytes()).hexdigest(),
        "npyDtype": str(matrix.dtype),
        "labels": labels.tolist(),
    },
    sys.stdout,
)
