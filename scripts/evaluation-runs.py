"""TREC runs of published vectors: python evaluation-runs.py FOLDER FLAT.txt HNSW.txt, with faiss-cpu."""

import sys

import faiss
import numpy as np

folder, *outputs = sys.argv[1:]
read = lambda name: [line.split()[0] for line in open(f"{folder}/{name}", encoding="utf-8")]
passages = np.load(f"{folder}/corpus_768_f32.npy")
queries = np.load(f"{folder}/query_768_f32.npy")
passage_ids, query_ids = read("corpus_ids.txt"), read("query_ids.txt")
flat = faiss.IndexFlatIP(passages.shape[1])
hnsw = faiss.IndexHNSWFlat(passages.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
hnsw.hnsw.efConstruction = 200
hnsw.hnsw.efSearch = 64
faiss.omp_set_num_threads(1)
for index, output in zip((flat, hnsw), outputs):
    index.add(passages)
    scores, rows = index.search(queries, 10)
    with open(output, "w", encoding="utf-8") as file:
        for query, found, values in zip(query_ids, rows, scores):
            for rank, (row, score) in enumerate(zip(found, values), 1):
                if row >= 0:
                    file.write(f"{query} Q0 {passage_ids[row]} {rank} {score:.9g} faiss\n")
