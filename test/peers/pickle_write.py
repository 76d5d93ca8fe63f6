"""Pickles rows of a .npy file as other projects do. Input: {"npy", "ids": a file with an id per line, "folder"}."""

import hashlib
import json
import os
import pickle
import sys

import numpy as np

request = json.load(sys.stdin)
# A copy, because a memory map is pickled as another class.
rows = np.array(np.load(request["npy"])[:1500])
ids = open(request["ids"], encoding="utf-8").read().split("\n")[: len(rows)]
reply = {}


def write(name, value, protocol, held, arrays=1, with_ids=False, again=None):
    name = f"{name}-{protocol}.pickle"
    with open(os.path.join(request["folder"], name), "ab") as file:
        pickle.dump(value, file, protocol=protocol)
        if again is not None:
            pickle.dump(again, file, protocol=protocol)
    digest = hashlib.sha256(held.astype("<f4").tobytes()).hexdigest()
    reply[name] = {"sha256": digest, "rows": len(held), "arrays": arrays, "ids": with_ids}


for protocol in (2, 3, 4, 5):
    half = rows.astype("<f2")
    write("tevatron-float32", (rows, ids), protocol, rows, with_ids=True)
    write("tevatron-float16", (half, ids), protocol, half, with_ids=True)
    write("slice", rows[:700], protocol, rows[:700], again=rows[700:])
    write("rows", list(rows[:200]), protocol, rows[:200], arrays=200)
    write("list", [rows[:600], rows[600:]], protocol, rows, arrays=2)
json.dump(reply, sys.stdout)
