"""Builds an index as FlashRAG's index_builder does with --sentence_transformer, on the CPU.

    {"do": "build", "model": FOLDER, "corpus": PATH, "out": FOLDER, "maxLength": N, "batch": N, "instruction": TEXT}
        ->  {"version": TEXT, "rows": N, "seconds": SECONDS, "encodeSeconds": SECONDS, "peakBytes": BYTES, "bytes": BYTES}

It reads the whole corpus (JSON lines with contents), encodes all texts in one call of model.encode, adds all vectors to an
IndexFlatIP and writes it at the end. flashrag-dev 0.1.2 itself does not run on a CPU: one of its two encoders needs CUDA,
the other is called without a required argument.

seconds: from opening the corpus to the written index; the model is loaded before. peakBytes: peak memory of the process in
that time. bytes: size of the index file; FlashRAG's server also reads the corpus file.
"""

import json
import os
import time

from protocol import peak_bytes, reset_peak, serve_session


class Builder:
    def __init__(self, threads):
        self.threads = threads

    def build(self, model, corpus, out, maxLength, batch, instruction):
        os.environ["HF_HUB_OFFLINE"] = "1"
        import faiss
        import sentence_transformers
        import torch

        torch.set_num_threads(self.threads)
        faiss.omp_set_num_threads(self.threads)
        encoder = sentence_transformers.SentenceTransformer(model, device="cpu")
        encoder.max_seq_length = maxLength
        reset_peak()
        start = time.perf_counter()
        with open(corpus, encoding="utf-8") as file:
            passages = [json.loads(line) for line in file]
        texts = [f"{instruction}{passage['contents']}" for passage in passages]
        encode_start = time.perf_counter()
        vectors = encoder.encode(texts, batch_size=batch, show_progress_bar=False)
        encode_seconds = time.perf_counter() - encode_start
        index = faiss.index_factory(vectors.shape[1], "Flat", faiss.METRIC_INNER_PRODUCT)
        index.add(vectors)
        path = os.path.join(out, "baseline_Flat.index")
        faiss.write_index(index, path)
        seconds = time.perf_counter() - start
        size = os.path.getsize(path)
        os.remove(path)
        return {
            "version": f"sentence-transformers {sentence_transformers.__version__}, faiss-cpu {faiss.__version__}",
            "rows": len(passages),
            "seconds": seconds,
            "encodeSeconds": encode_seconds,
            "peakBytes": peak_bytes(),
            "bytes": size,
        }


serve_session(Builder)
