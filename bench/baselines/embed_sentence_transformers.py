"""sentence-transformers, by default on the CPU in float32.

    {"do": "load", "model": FOLDER, "texts": PATH, "queryPrefix": TEXT, "passagePrefix": TEXT,
     "maxQueryTokens": N, "maxPassageTokens": N, "batch": N, "device": "cpu", "dtype": "float32"}  ->  {"version": TEXT}
    {"do": "encode", "first": N, "count": N, ["batch": N, "maxPassageTokens": N]}  ->  {"ms": MILLISECONDS, "tokens": N, "squaredTokens": N}
    {"do": "query", "first": N, "count": N}   ->  {"times": [MILLISECONDS, ...]}     one query per call
    {"do": "vectors", "count": N}             ->  {"values": [...]}                   of the first N passages
    {"do": "matmul"}                          ->  {"gflopPerS": N}                    float32 product of two 1024 x 1024 matrices
    {"do": "memory"}                          ->  {"residentBytes": BYTES}

texts: a JSON file {"passages": [...], "queries": [...]}. Only model.encode is timed. tokens and squaredTokens: sums over the
texts, including special tokens but not padding. bench/embed/trawl-process.ts answers the same requests except "matmul".
"""

import functools
import json
import os
import time

from protocol import peak_bytes, reset_peak, resident_bytes, serve_session

MATMUL_SIZE = 1024
MATMUL_RUNS = 30


class Encoder:
    def __init__(self, threads):
        self.threads = threads

    def load(self, model, texts, queryPrefix, passagePrefix, maxQueryTokens, maxPassageTokens, batch, device="cpu", dtype="float32"):
        os.environ["HF_HUB_OFFLINE"] = "1"
        import sentence_transformers
        import torch

        torch.set_num_threads(self.threads)
        self.torch = torch
        with open(texts, encoding="utf-8") as file:
            given = json.load(file)
        self.passages = [passagePrefix + text for text in given["passages"]]
        self.queries = [queryPrefix + text for text in given["queries"]]
        self.limits = {"query": maxQueryTokens, "passage": maxPassageTokens}
        self.batch = batch
        self.bytes_before = resident_bytes()
        # Without it, checkpoints in bfloat16 run in bfloat16.
        weights = {"dtype": getattr(torch, dtype)}
        self.model = sentence_transformers.SentenceTransformer(model, device=device, model_kwargs=weights)
        reset_peak()
        return {"version": f"sentence-transformers {sentence_transformers.__version__} (torch {torch.__version__})"}

    def encode(self, first, count, batch=None, maxPassageTokens=None):
        passages = self.passages[first : first + count]
        limit = self.limits["passage"] if maxPassageTokens is None else maxPassageTokens
        self.model.max_seq_length = limit
        start = time.perf_counter_ns()
        self.model.encode(passages, batch_size=self.batch if batch is None else batch, show_progress_bar=False)
        ms = (time.perf_counter_ns() - start) / 1e6
        lengths = self.lengths(first, count, limit)
        return {"ms": ms, "tokens": sum(lengths), "squaredTokens": sum(length * length for length in lengths)}

    @functools.lru_cache(maxsize=64)
    def lengths(self, first, count, limit):
        ids = self.model.tokenizer(self.passages[first : first + count], truncation=True, max_length=limit)["input_ids"]
        return [len(text) for text in ids]

    def query(self, first, count):
        self.model.max_seq_length = self.limits["query"]
        times = []
        for text in self.queries[first : first + count]:
            start = time.perf_counter_ns()
            self.model.encode([text], show_progress_bar=False)
            times.append((time.perf_counter_ns() - start) / 1e6)
        return {"times": times}

    def vectors(self, count):
        self.model.max_seq_length = self.limits["passage"]
        return {"values": self.model.encode(self.passages[:count], show_progress_bar=False).ravel().tolist()}

    def matmul(self):
        a = self.torch.rand(MATMUL_SIZE, MATMUL_SIZE)
        b = self.torch.rand(MATMUL_SIZE, MATMUL_SIZE)
        times = []
        for _ in range(MATMUL_RUNS):
            start = time.perf_counter_ns()
            a @ b
            times.append(time.perf_counter_ns() - start)
        # Other work on the machine disturbs the fastest run least.
        return {"gflopPerS": 2 * MATMUL_SIZE**3 / min(times)}

    def memory(self):
        peak = peak_bytes()
        reset_peak()
        return {"residentBytes": max(0, peak - self.bytes_before)}


serve_session(Encoder)
