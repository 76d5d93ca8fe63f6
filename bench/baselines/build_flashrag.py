"""An index built as FlashRAG's index_builder builds it with --sentence_transformer, on the CPU.

    {"do": "build", "model": FOLDER, "corpus": PATH, "out": FOLDER, "maxLength": N, "batch": N, "instruction": TEXT}
        ->  {"version": TEXT, "rows": N, "seconds": SECONDS, "encodeSeconds": SECONDS, "peakBytes": BYTES, "bytes": BYTES}

The corpus (JSON lines with contents) is read whole, model.encode gets all texts in one call, IndexFlatIP gets all vectors
in one add, and write_index writes them: a process that ends before that has nothing. flashrag-dev 0.1.2 itself cannot run
here: one of its two encoders wants CUDA, the other is called without an argument that it needs.

seconds: from the open corpus file to the written index, the model loaded before. peakBytes: of the process meanwhile.
bytes: of the index; a server of this kind reads the corpus file beside it.
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
