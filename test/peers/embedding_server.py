"""An embedding server with OpenAI's interface over a model of sentence-transformers, as a program of another project would be.

The first line of stdin is {"model": FOLDER, "corpus": JSONL, "folder": OUT}. It first embeds the corpus with two processes, as
docs/building.md shows it, and writes the vectors as .npy, as a raw memmap (FlashRAG) and as pickles with ids (tevatron). Then it
prints {"url": ...}, and answers until stdin ends.
"""

import base64
import json
import os
import pickle
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

NAME = "all-MiniLM-L6-v2"


def write_vectors(model, corpus, folder):
    with open(corpus, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    # As Search-R1 writes title and text.
    texts = [f'"{row["title"]}"\n{row["text"]}' for row in rows]
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    vectors = model.encode(texts, pool=pool, batch_size=32, normalize_embeddings=True)
    model.stop_multi_process_pool(pool)
    vectors = np.asarray(vectors, dtype="float32")
    np.save(os.path.join(folder, "vectors.npy"), vectors)
    memmap = np.memmap(os.path.join(folder, "emb_e5.memmap"), dtype="float32", mode="w+", shape=vectors.shape)
    memmap[:] = vectors
    memmap.flush()
    half = len(rows) // 2
    for i, part in enumerate((slice(0, half), slice(half, None))):
        with open(os.path.join(folder, f"corpus.{i}.pkl"), "wb") as file:
            pickle.dump((vectors[part], [str(row["id"]) for row in rows[part]]), file)


def handler_of(model):
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path != "/v1/models":
                return self.reply(404, {"error": {"message": "not found"}})
            return self.reply(200, {"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "tests"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path != "/v1/embeddings" or body.get("model") != NAME:
                return self.reply(404, {"error": {"message": "not found"}})
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            with lock, torch.no_grad():
                vectors = model.encode(texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False)
                tokens = int(model.tokenize(texts)["attention_mask"].sum())
            data = [
                {
                    "object": "embedding",
                    "index": i,
                    "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode()
                    if body.get("encoding_format") == "base64"
                    else vector.tolist(),
                }
                for i, vector in enumerate(vectors)
            ]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            return self.reply(200, {"object": "list", "data": data, "model": NAME, "usage": usage})

        def reply(self, status, value):
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    return Handler


def main():
    request = json.loads(sys.stdin.readline())
    model = SentenceTransformer(request["model"], device="cpu")
    write_vectors(model, request["corpus"], request["folder"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(model))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}"}), flush=True)
    sys.stdin.read()


# The processes of the pool import this file.
if __name__ == "__main__":
    main()
