"""Follows the advice of messages about vector files. Input: {"folder", "commands": a Python program by name}. Each program writes
vectors.npy; output: the names whose vectors differ from rows.f32."""

import json
import os
import subprocess
import sys

import numpy as np

request = json.load(sys.stdin)
rows = np.fromfile(os.path.join(request["folder"], "rows.f32"), "<f4").reshape(-1, 8)
wrong = []
for name, command in request["commands"].items():
    written = os.path.join(request["folder"], "vectors.npy")
    if os.path.exists(written):
        os.remove(written)
    ended = subprocess.run([sys.executable, "-c", command], cwd=request["folder"], stdout=sys.stderr, check=False)
    if ended.returncode != 0 or not np.array_equal(np.load(written), rows) or np.load(written).dtype != np.float32:
        wrong.append(name)
json.dump(wrong, sys.stdout)
