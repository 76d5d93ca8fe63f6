"""Prints recall and MRR of a model folder, its teacher and BM25 as a Markdown table.

    python evaluate.py --model DIR --teacher DIR --set FOLDER...

Each set folder contains corpus.jsonl ({"id","contents"} or {"id","title","text"})
and queries.jsonl ({"id","question","gold_ids"}). The model embeds one text at a
time; `--check` also verifies file sizes and batch invariance.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
import onnxruntime as ort
import Stemmer

from teacher import Teacher, load_tokenizer

DEPTH = 10


@dataclass
class EvaluationSet:
    """Passages, questions, and the rows of the gold passages of each question."""

    name: str
    contents: list[str]
    questions: list[str]
    gold: list[set[int]]


def read_set(folder: Path) -> EvaluationSet:
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    queries = [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]
    row_of = {row["id"]: i for i, row in enumerate(rows)}
    contents = [r["contents"] if "contents" in r else f'"{r["title"]}"\n{r["text"]}' for r in rows]
    gold = [{row_of[g] for g in q["gold_ids"]} for q in queries]
    return EvaluationSet(folder.name, contents, [q["question"] for q in queries], gold)


class ShippedModel:
    """A trawl-model folder. Runs the graph, then mean pooling and L2 normalisation, as Trawl does."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "trawl-model.json").read_text())
        self.tokenizer = load_tokenizer(folder / self.config["tokenizer"]["path"])
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        graph = str(folder / self.config["graph"]["path"])
        self.session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def token_ids(self, text: str, input_type: str) -> list[int]:
        ids = self.tokenizer.encode(self.config["prefixes"][input_type] + text).ids
        limit = self.config["maxTokens"][input_type]
        return ids if len(ids) <= limit else ids[: limit - 1] + ids[-1:]

    def encode_batch(self, texts: list[str], input_type: str) -> np.ndarray:
        """Embeds texts in one padded run. Returns float32 [n, dimension], unit rows."""
        ids = [self.token_ids(t, input_type) for t in texts]
        width = max(map(len, ids))
        tokens = np.array([x + [0] * (width - len(x)) for x in ids], np.int64)
        mask = np.array([[1] * len(x) + [0] * (width - len(x)) for x in ids], np.int64)
        feeds = {"input_ids": tokens, "attention_mask": mask}
        (hidden,) = self.session.run([self.config["graph"]["output"]], feeds)
        out = np.empty((len(ids), hidden.shape[2]), np.float32)
        for i, x in enumerate(ids):  # excludes the padding
            pooled = hidden[i, : len(x)].mean(0)
            out[i] = pooled / np.linalg.norm(pooled)
        return out

    def encode(self, texts: list[str], input_type: str) -> np.ndarray:
        """Embeds texts one at a time. Returns float32 [n, dimension]."""
        return np.concatenate([self.encode_batch([t], input_type) for t in texts])


def dense_top(queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
    """Rows of the best DEPTH passages, int [q, DEPTH], best first; equal scores by the lower row."""
    return np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :DEPTH]


def bm25_top(data: EvaluationSet) -> np.ndarray:
    """bm25s: Lucene scoring, k1 0.9, b 0.4, English stop words, Snowball English stemmer."""
    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]):
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(tokens(data.contents), show_progress=False)
    return index.retrieve(tokens(data.questions), k=DEPTH, show_progress=False)[0]


def scores(top: np.ndarray, gold: list[set[int]]) -> dict[str, float]:
    """Means of recall@5, recall@10 (share of the gold passages found) and MRR@10 over the questions."""

    def recall(k: int) -> float:
        return float(np.mean([len(g & set(t[:k].tolist())) / len(g) for t, g in zip(top, gold)]))

    ranks = [next((r for r, d in enumerate(t.tolist(), 1) if d in g), 0) for t, g in zip(top, gold)]
    return {"recall@5": recall(5), "recall@10": recall(10), "MRR@10": float(np.mean([1 / r if r else 0 for r in ranks]))}


def check(folder: Path, model: ShippedModel, texts: list[str], limit: int) -> None:
    """Exits unless the files have at most `limit` bytes and the vectors do not depend on the batch."""
    size = sum(f.stat().st_size for f in folder.iterdir() if f.is_file())
    alone = model.encode(texts, "passage")
    for width in (2, 7, 32):
        parts = [model.encode_batch(texts[i : i + width], "passage") for i in range(0, len(texts), width)]
        if not np.array_equal(alone.view(np.uint32), np.concatenate(parts).view(np.uint32)):
            raise SystemExit(f"vectors in batches of {width} differ from those of single texts")
    empty = model.encode([""], "query")
    if not np.isclose(np.linalg.norm(empty), 1, atol=1e-5):
        raise SystemExit("the vector of an empty text is not a unit vector")
    print(f"all files: {size} bytes (limit {limit}); {len(texts)} texts: equal vectors in batches of 1, 2, 7 and 32; empty text: unit vector")
    if size > limit:
        raise SystemExit("the files are too large")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="trawl-model folder")
    parser.add_argument("--teacher", type=Path, help="sentence-transformers folder to compare with")
    parser.add_argument("--set", type=Path, nargs="+", required=True, help="folders with corpus.jsonl and queries.jsonl")
    parser.add_argument("--no-bm25", action="store_true")
    parser.add_argument("--check", action="store_true", help="also verify file sizes and batch invariance")
    parser.add_argument("--limit", type=int, default=9_000_000, help="limit of the total file size in bytes, for --check")
    args = parser.parse_args()
    model = ShippedModel(args.model)
    teacher = Teacher(args.teacher) if args.teacher else None
    print("| set | encoder | recall@5 | recall@10 | MRR@10 |\n| --- | --- | ---: | ---: | ---: |")
    for data in map(read_set, args.set):
        started = time.time()
        tops = {model.config["name"]: dense_top(model.encode(data.questions, "query"), model.encode(data.contents, "passage"))}
        seconds = time.time() - started
        if teacher:
            tops["teacher, fp32"] = dense_top(teacher.encode(data.questions), teacher.encode(data.contents))
        if not args.no_bm25:
            tops["BM25"] = bm25_top(data)
        for name, top in tops.items():
            values = " | ".join(f"{v:.3f}" for v in scores(top, data.gold).values())
            print(f"| {data.name} | {name} | {values} |", flush=True)
        if args.check:
            check(args.model, model, data.contents[:500], args.limit)
            print(f"{data.name}: {len(data.contents)} passages and {len(data.questions)} questions in {seconds:.1f} s, one text at a time")


if __name__ == "__main__":
    main()
