"""Distils a static token-average encoder from a sentence-transformers teacher.

    python train_token_average.py --teacher DIR --corpus FILE... \
        --exclude-titles-from FILE... --cache DIR --out DIR
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from corpus import drop_evaluated, read_corpus
from dataset import TrainingSet, ValidationSet, build_training_set, build_validation_set, split_titles
from export import quantize_rows, set_special_rows, write_model
from student import Adam, Batch, embed, lengthen_rare_rows, normalize_rows, token_counts, whiten
from teacher import Teacher

Counts = Callable[[list[str]], sparse.csr_matrix]  # texts -> token counts [n, vocabulary]

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass
class Settings:
    """Hyperparameters, recorded in trawl-model.json."""

    dimension: int = 256
    epochs: int = 18
    batch_passages: int = 1024
    learning_rate: float = 0.02
    initial_length: float = 3.0
    cosine_weight: float = 1.0
    taught_an_epoch: float = 0.5
    contrastive_weight: float = 1.0
    temperature: float = 0.05
    token_dropout: float = 0.1
    max_tokens: int = 128
    well_seen_low: int = 64
    well_seen_high: int = 256
    whitening: float = 0.2
    validation_share: float = 0.04
    seed: int = 17


def projection(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """Top right-singular vectors [d, dimension] of the teacher's embeddings [n, d] (PCA, not centred)."""
    x = vectors.astype(np.float32)
    values, basis = np.linalg.eigh((x.T @ x).astype(np.float64))
    kept = values[-dimension:].sum() / values.sum()
    print(f"projection to {dimension} dimensions keeps {kept:.4f} of the energy", flush=True)
    return np.ascontiguousarray(basis[:, ::-1][:, :dimension], np.float32)


def initial_table(teacher: Teacher, basis: np.ndarray, counts: sparse.csr_matrix) -> np.ndarray:
    """The teacher's vector of each single token, projected and weighted by a / (a + p(token)) (SIF)."""
    size = teacher.tokenizer.get_vocab_size()
    cls, sep = (teacher.tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]"))
    vectors = np.concatenate(
        [teacher.encode_ids([[cls, t, sep] for t in range(s, min(s + 512, size))]) for s in range(0, size, 512)]
    )
    frequency = np.asarray(counts.sum(0)).ravel() / counts.sum()
    table = normalize_rows(vectors @ basis)[0] * (1e-3 / (1e-3 + frequency))[:, None]
    return np.ascontiguousarray(table, np.float32)


def similar_order(vectors: np.ndarray, rng: np.random.Generator, leaf: int = 64) -> np.ndarray:
    """An order [n] with similar passages next to each other, by recursive random bisection; groups are shuffled."""
    groups, leaves = [np.arange(len(vectors))], []
    while groups:
        g = groups.pop()
        if len(g) <= leaf:
            leaves.append(rng.permutation(g))
            continue
        a, b = vectors[rng.choice(g, 2, replace=False)].astype(np.float32)
        g = g[np.argsort(vectors[g].astype(np.float32) @ (a - b), kind="stable")]
        groups += [g[: len(g) // 2], g[len(g) // 2 :]]
    return np.concatenate([leaves[i] for i in rng.permutation(len(leaves))])


def drop_tokens(counts: sparse.csr_matrix, share: float, rng: np.random.Generator) -> sparse.csr_matrix:
    """Drops a random share of the (text, token) entries. The first entry of each text is kept."""
    keep = rng.random(counts.nnz) >= share
    keep[np.minimum(counts.indptr[:-1], counts.nnz - 1)] = True
    indptr = np.concatenate([[0], np.cumsum(keep)])[counts.indptr]
    return sparse.csr_matrix((counts.data[keep], counts.indices[keep], indptr), shape=counts.shape)


class Validator:
    """Measures retrieval on held-out articles, for student and teacher."""

    def __init__(self, data: ValidationSet, counts: Counts) -> None:
        n = len(data.cloze_queries.texts)
        self.tasks = {
            "cloze": (data.cloze_queries, data.cloze_passages, np.stack([np.arange(n), np.full(n, -1)], 1)),
            "query": (data.queries, data.passages, data.query_gold),
        }
        self.counts = {k: (counts(q.texts), counts(p.texts)) for k, (q, p, _) in self.tasks.items()}

    @staticmethod
    def recall(scores: np.ndarray, gold: np.ndarray, k: int = 10) -> float:
        top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        hit = (top[:, :, None] == gold[:, None, :]).any(1)  # -1 never matches
        return float((hit.sum(1) / (gold >= 0).sum(1)).mean())

    def teacher(self) -> dict[str, float]:
        f = np.float32
        return {k: self.recall(q.vectors.astype(f) @ p.vectors.astype(f).T, g) for k, (q, p, g) in self.tasks.items()}

    def student(self, table: np.ndarray) -> dict[str, float]:
        return {
            k: self.recall(embed(q, table) @ embed(p, table).T, self.tasks[k][2]) for k, (q, p) in self.counts.items()
        }


def subtract(passages: sparse.csr_matrix, removed: sparse.csr_matrix) -> sparse.csr_matrix:
    """Token counts of passages minus those of the removed texts, at least zero. A passage that would be empty stays whole."""
    left = (passages - removed).tocsr()
    left.data = np.maximum(left.data, 0)
    empty = np.flatnonzero(np.asarray(left.sum(1)).ravel() == 0)
    if len(empty):
        restore = sparse.csr_matrix((np.ones(len(empty)), (empty, empty)), shape=(left.shape[0],) * 2, dtype=np.float32)
        left = (left + restore @ passages).tocsr()
    left.eliminate_zeros()
    return left


def train(
    data: TrainingSet, table: np.ndarray, basis: np.ndarray, counts: Counts, s: Settings, validator: Validator
) -> None:
    """Trains `table` in place.

    Each step uses one contrastive pair for each of `batch_passages` passages,
    which are similar to each other, so that negatives are hard. It also moves a
    share of the taught texts towards the teacher's projected embeddings.
    """
    rng = np.random.default_rng(s.seed)
    x_passages, x_taught = counts(data.contents), counts(data.taught.texts)
    targets = normalize_rows(data.taught.vectors.astype(np.float32) @ basis)[0].astype(np.float16)
    n, m = len(data.contents), len(data.taught.texts)
    steps = n // s.batch_passages
    adam = Adam(table, s.learning_rate, s.epochs * steps)
    for epoch in range(s.epochs):
        started, losses = time.time(), []
        pairs = [data.maker.pair(i) for i in range(n)]
        x_queries, x_removed = counts([q for q, _ in pairs]), counts([r for _, r in pairs])
        x_left = subtract(x_passages, x_removed)
        order = similar_order(embed(x_passages, table), rng)
        taught_order = rng.permutation(m)
        taught_share = round(m * s.taught_an_epoch)
        for b in range(steps):
            i = order[b * s.batch_passages : (b + 1) * s.batch_passages]
            t = taught_order[b * taught_share // steps : (b + 1) * taught_share // steps]
            stacked = sparse.vstack([x_queries[i], x_left[i], x_taught[t]], format="csr")
            batch = Batch(drop_tokens(stacked, s.token_dropout, rng), table)
            q, p, d = slice(0, len(i)), slice(len(i), 2 * len(i)), slice(2 * len(i), None)
            contrastive = batch.contrastive_loss(q, p, s.temperature, s.contrastive_weight)
            cosine = batch.cosine_loss(d, targets[t].astype(np.float32), s.cosine_weight)
            adam.step(batch.rows, batch.backward())
            losses.append((contrastive, cosine))
        values = "contrastive {:.3f}, cosine {:.3f}".format(*np.mean(losses, axis=0))
        recall = ", ".join(f"{k} {v:.4f}" for k, v in validator.student(table).items())
        print(f"epoch {epoch + 1}: {values}; held-out recall@10: {recall}; {time.time() - started:.0f} s", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="sentence-transformers folder with mean pooling")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="JSONL training text")
    parser.add_argument("--exclude-titles-from", type=Path, nargs="*", default=[], help="JSONL corpora of the evaluation sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder for the teacher's embeddings")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the model to")
    parser.add_argument("--teacher-name", help="recorded in trawl-model.json (default: the folder's name)")
    parser.add_argument("--name", default="token-average-256")
    parser.add_argument("--threads", type=int, default=2, help="teacher threads")
    parser.add_argument("--chunks", type=int, default=6, help="number of parts in which the teacher's embeddings are computed and cached")
    parser.add_argument("--taught-chunks", type=int, help="number of parts whose passages the teacher embeds (default: all)")
    parser.add_argument("--view-chunks", type=int, help="number of parts whose sentences, titles and pseudo-queries the teacher embeds (default: all)")
    for name, value in asdict(Settings()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    started = time.time()
    s = Settings(**{k: getattr(args, k) for k in asdict(Settings())})
    passages = [p for f in args.corpus for p in read_corpus(f)]
    evaluated = [p for f in args.exclude_titles_from for p in read_corpus(f)]
    kept, dropped = drop_evaluated(passages, evaluated)
    train_passages, valid_passages = split_titles(kept, s.seed, s.validation_share)
    print(f"{len(passages)} passages read, dropped {dropped}, {len(train_passages)} to train, {len(valid_passages)} held out")

    teacher = Teacher(args.teacher, s.max_tokens, args.threads)
    valid = build_validation_set(valid_passages, teacher, args.cache, s.seed)
    data = build_training_set(
        train_passages, teacher, args.cache, s.seed, args.chunks,
        args.chunks if args.taught_chunks is None else args.taught_chunks,
        args.chunks if args.view_chunks is None else args.view_chunks,
    )
    skip = frozenset(teacher.tokenizer.token_to_id(t) for t in SPECIAL_TOKENS)

    def counts(texts: list[str]) -> sparse.csr_matrix:
        return token_counts(teacher.tokenizer, texts, s.max_tokens, skip)

    validator = Validator(valid, counts)
    print("held-out recall@10 of the teacher:", validator.teacher())
    basis = projection(data.taught.vectors, s.dimension)
    table = s.initial_length * initial_table(teacher, basis, counts(data.contents))
    print("before training:", validator.student(table))
    prepared = time.time()
    train(data, table, basis, counts, s, validator)
    print("trained:", validator.student(table))
    x_passages = counts(data.contents)
    frequency = np.asarray((x_passages > 0).sum(0)).ravel()
    table = lengthen_rare_rows(table, frequency, (s.well_seen_low, s.well_seen_high))
    print("rare rows lengthened:", validator.student(table))
    table = whiten(table, embed(x_passages, table), s.whitening)
    print("whitened:", validator.student(table))
    codes, scales = quantize_rows(table)
    centre = embed(x_passages, table).mean(0)
    set_special_rows(codes, scales, skip, teacher.tokenizer.token_to_id("[CLS]"), centre)
    print("quantised:", validator.student(codes * scales[:, None]))
    source = {
        "script": "models/train/train_token_average.py",
        "teacher": args.teacher_name or args.teacher.name,
        "seed": s.seed,
        "settings": asdict(s),
        "chunks": {"all": args.chunks, "passagesTaught": args.taught_chunks, "viewsTaught": args.view_chunks},
        "passagesRead": len(passages),
        "passagesDropped": dropped,
        "passagesTrained": len(data.contents),
        "textsTaught": len(data.taught.texts),
        "passagesHeldOut": len(valid_passages),
        "secondsTraining": round(time.time() - prepared),
    }
    write_model(args.out, args.name, args.teacher / "tokenizer.json", codes, scales, source)
    print(f"written to {args.out}, {time.time() - started:.0f} s in total")


if __name__ == "__main__":
    main()
