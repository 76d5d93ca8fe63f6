"""Vectors of sentence-transformers, float32 on the CPU: {"model": FOLDER, "texts": [...]} -> [[...], ...], one list a text."""

import json
import sys

from sentence_transformers import SentenceTransformer

request = json.load(sys.stdin)
model = SentenceTransformer(request["model"], device="cpu")
vectors = model.encode(request["texts"], show_progress_bar=False)
json.dump(vectors.astype("float64").tolist(), sys.stdout)
