"""Encodes texts as queries and as documents with the models of several folders:
{"folders": [FOLDER], "texts": [...]} -> [{"query": vectors, "passage": vectors}] with a list of values per text."""

import json
import sys

from sentence_transformers import SentenceTransformer

request = json.load(sys.stdin)
result = []
for folder in request["folders"]:
    model = SentenceTransformer(folder, device="cpu")
    encode = {"query": model.encode_query, "passage": model.encode_document}
    texts = request["texts"]
    result.append({kind: run(texts, show_progress_bar=False).astype("float64").tolist() for kind, run in encode.items()})
json.dump(result, sys.stdout)
