"""Encodes texts with sentence-transformers in float32 on the CPU: {"model": FOLDER, "texts": [...]} -> a list of values per text."""

import json
import sys

from sentence_transformers import SentenceTransformer

request = json.load(sys.stdin)
model = SentenceTransformer(request["model"], device="cpu")
vectors = model.encode(request["texts"], show_progress_bar=False)
json.dump(vectors.astype("float64").tolist(), sys.stdout)
