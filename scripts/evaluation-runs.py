"""TREC runs over given vectors, by FAISS Flat, FAISS HNSW and usearch HNSW (M 32, efConstruction 200, efSearch 64).

python evaluation-runs.py FOLDER PASSAGES PASSAGE_IDS QUERIES QUERY_IDS writes flat.txt, faiss-hnsw.txt and usearch-hnsw.txt.
PASSAGES and QUERIES are .npy or FAISS flat files, the ids the first word of each line. With the packages of bench/baselines/requirements.txt.
"""

import sys

import faiss
import numpy as np
from usearch.index import Index, MetricKind, ScalarKind

NEIGHBOURS, CONSTRUCTION, SEARCH, K = 32, 200, 64, 10
folder, passages, passage_ids, queries, query_ids = sys.argv[1:]


def vectors(path):
    if path.endswith(".npy"):
        return np.load(path)
    index = faiss.read_index(path)
    return index.reconstruct_n(0, index.ntotal)


def ids(path):
    return [line.split()[0] for line in open(path, encoding="utf-8")]


passages, queries = vectors(passages), vectors(queries)
passage_ids, query_ids = ids(passage_ids), ids(query_ids)
assert (len(passages), len(queries)) == (len(passage_ids), len(query_ids)), "a vector for each id"
# One thread inserts, so that a graph is the same in each run.
faiss.omp_set_num_threads(1)
flat = faiss.IndexFlatIP(passages.shape[1])
graph = faiss.IndexHNSWFlat(passages.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
graph.hnsw.efConstruction, graph.hnsw.efSearch = CONSTRUCTION, SEARCH
for index in (flat, graph):
    index.add(passages)
usearch = Index(
    ndim=passages.shape[1],
    metric=MetricKind.IP,
    dtype=ScalarKind.F32,
    connectivity=NEIGHBOURS,
    expansion_add=CONSTRUCTION,
    expansion_search=SEARCH,
)
usearch.add(np.arange(len(passages), dtype=np.uint64), passages, threads=1)
found = usearch.search(queries, K, threads=1)
runs = {
    "flat": flat.search(queries, K),
    "faiss-hnsw": graph.search(queries, K),
    "usearch-hnsw": (1 - found.distances, found.keys.astype(np.int64)),
}
for name, (scores, rows) in runs.items():
    with open(f"{folder}/{name}.txt", "w", encoding="utf-8") as file:
        for query, best, values in zip(query_ids, rows, scores):
            for rank, (row, score) in enumerate(zip(best, values), 1):
                if row >= 0:
                    file.write(f"{query} Q0 {passage_ids[row]} {rank} {score:.9g} {name}\n")
