"""Opens an index with FAISS. Input: {"path", "queries": path of float32, row-major, "k"}; queries and k may be absent."""

import hashlib
import json
import sys

import faiss
import numpy as np

request = json.load(sys.stdin)
index = faiss.read_index(request["path"])
rows = index.reconstruct_n(0, index.ntotal)
reply = {
    "className": type(index).__name__,
    "dimension": index.d,
    "rows": index.ntotal,
    "metric": {faiss.METRIC_INNER_PRODUCT: "inner-product", faiss.METRIC_L2: "l2"}[index.metric_type],
    "sha256": hashlib.sha256(rows.tobytes()).hexdigest(),
}
if "queries" in request:
    queries = np.fromfile(request["queries"], dtype="<f4").reshape(-1, index.d)
    scores, labels = index.search(queries, request["k"])
    reply["labels"] = labels.tolist()
    reply["scores"] = scores.tolist()
json.dump(reply, sys.stdout)
