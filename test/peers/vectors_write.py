"""Writes vector files with faiss and numpy. Input: {"folder"}; output: the file names, in order."""

import json
import os
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
json.dump(sorted(os.listdir(folder)), sys.stdout)
