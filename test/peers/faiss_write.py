"""Writes indexes of several types over the same random rows. Input: {"folder"}; output: the file names."""

import json
import os
import sys

import faiss
import numpy as np

folder = json.load(sys.stdin)["folder"]
rows = np.random.default_rng(5).standard_normal((700, 16)).astype("float32")
rows.tofile(os.path.join(folder, "rows.f32"))
indexes = {
    "flat-ip": faiss.IndexFlatIP(16),
    "flat-l2": faiss.IndexFlatL2(16),
    "flat-empty": faiss.IndexFlatIP(16),
    "flat-l1": faiss.IndexFlat(16, faiss.METRIC_L1),
    "hnsw": faiss.IndexHNSWFlat(16, 8),
    "ivf-flat": faiss.index_factory(16, "IVF4,Flat"),
    "ivf-pq": faiss.index_factory(16, "IVF4,PQ4x4"),
    "pq": faiss.index_factory(16, "PQ4x4"),
    "sq": faiss.index_factory(16, "SQ8"),
    "id-map": faiss.index_factory(16, "IDMap,Flat"),
    "id-map-2": faiss.index_factory(16, "IDMap2,Flat"),
}
for name, index in indexes.items():
    if name != "flat-empty":
        index.train(rows)
        if name.startswith("id-map"):
            index.add_with_ids(rows, np.arange(700))
        else:
            index.add(rows)
    faiss.write_index(index, os.path.join(folder, name))
json.dump(sorted(indexes), sys.stdout)
