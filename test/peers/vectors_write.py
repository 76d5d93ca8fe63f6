"""Writes vector files with faiss and numpy. Input: {"folder"}; output: the file names, in order."""

import json
import os
import pickle
import sys

import faiss
import numpy as np

folder = json.load(sys.stdin)["folder"]
# Multiples of 1/128, which float16 represents exactly.
rows = np.random.default_rng(7).integers(-128, 128, (500, 8)).astype("float32") / 128


def at(name):
    return os.path.join(folder, name)


rows.tofile(at("rows.f32"))
flat = faiss.IndexFlatIP(8)
flat.add(rows)
faiss.write_index(flat, at("flat-ip.index"))
l2 = faiss.IndexFlatL2(8)
l2.add(rows)
faiss.write_index(l2, at("flat-l2.index"))
halves = faiss.IndexScalarQuantizer(8, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
halves.train(rows)
halves.add(rows)
faiss.write_index(halves, at("sq-fp16.index"))
np.save(at("f4.npy"), rows)
np.save(at("f2.npy"), rows.astype("float16"))
with open(at("f4-v2.npy"), "wb") as file:
    np.lib.format.write_array(file, rows, version=(2, 0))
with open(at("f4-v3.npy"), "wb") as file:
    np.lib.format.write_array(file, rows, version=(3, 0))
memmap = np.memmap(at("emb_e5.memmap"), dtype="float32", mode="w+", shape=rows.shape)
memmap[:] = rows
memmap.flush()
np.save(at("f8.npy"), rows.astype("float64"))
np.save(at("big-endian.npy"), rows.astype(">f4"))
np.save(at("fortran.npy"), np.asfortranarray(rows))
np.save(at("objects.npy"), np.array([rows, None], dtype=object), allow_pickle=True)
np.save(at("cube.npy"), rows.reshape(10, 50, 8))
np.savez(at("one.npz"), rows)
np.savez(at("named.npz"), ids=np.array([str(row) for row in range(500)]), embeddings=rows)
np.savez_compressed(at("compressed.npz"), rows)
mapped = faiss.IndexIDMap(faiss.IndexFlatIP(8))
mapped.add_with_ids(rows, np.arange(500))
faiss.write_index(mapped, at("id-map.index"))
mapped2 = faiss.IndexIDMap2(faiss.IndexFlatIP(8))
mapped2.add_with_ids(rows, np.arange(500))
faiss.write_index(mapped2, at("id-map-2.index"))
with open(at("rows.fvecs"), "wb") as file:
    for row in rows:
        file.write(np.int32(8).tobytes() + row.tobytes())
# As pyserini.encode writes it (JsonlRepresentationWriter).
with open(at("embeddings.jsonl"), "w", encoding="utf-8") as file:
    for row, vector in enumerate(rows):
        file.write(json.dumps({"id": row, "contents": "a text", "vector": vector.tolist()}) + "\n")
# As DPR's generate_dense_embeddings.py writes a shard, and as the retriever of DPR reads it (LocalFaissRetriever's
# iterate_encoded_files).
with open(at("dpr_0"), mode="wb") as f:
    pickle.dump([(f"wiki:{row}", vector) for row, vector in enumerate(rows)], f)
with open(at("dpr_0"), "rb") as reader:
    doc_vectors = pickle.load(reader)
    for row, doc in enumerate(doc_vectors):
        doc = list(doc)
        assert doc[0] == f"wiki:{row}" and np.array_equal(doc[1], rows[row])
# Other indexes: Trawl says how their rows are written as .npy.
for name, index in {
    "hnsw.index": faiss.IndexHNSWFlat(8, 16, faiss.METRIC_INNER_PRODUCT),
    "ivf.index": faiss.index_factory(8, "IVF4,Flat", faiss.METRIC_INNER_PRODUCT),
    "refine.index": faiss.index_factory(8, "IVF4,PQ4x4,RFlat", faiss.METRIC_INNER_PRODUCT),
    "map-of-hnsw.index": faiss.IndexIDMap(faiss.IndexHNSWFlat(8, 16, faiss.METRIC_INNER_PRODUCT)),
    "pq.index": faiss.index_factory(8, "PQ4x4", faiss.METRIC_INNER_PRODUCT),
    "pca.index": faiss.index_factory(8, "PCA4,Flat", faiss.METRIC_INNER_PRODUCT),
}.items():
    index.train(rows)
    if name.startswith("map"):
        index.add_with_ids(rows, np.arange(500))
    else:
        index.add(rows)
    faiss.write_index(index, at(name))
objects = np.empty(500, dtype=object)
for row in range(500):
    objects[row] = rows[row]
np.save(at("object-rows.npy"), objects, allow_pickle=True)
for name, value in {
    "float64.pkl": rows.astype("float64"),
    "chunks.pkl": [rows[:200].astype("float64"), rows[200:].astype("float64")],
    "protocol-2.pkl": rows,
}.items():
    with open(at(name), "wb") as file:
        pickle.dump(value, file, protocol=2 if name.startswith("protocol") else 4)
json.dump(sorted(os.listdir(folder)), sys.stdout)
