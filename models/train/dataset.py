"""Teacher embeddings of the training text, computed in chunks and cached in a folder."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpus import Passage, QueryMaker, cloze
from teacher import Teacher

QUERIES_PER_PASSAGE = 2


@dataclass
class TextSet:
    """Texts with their teacher embeddings, float16 [n, d]."""

    texts: list[str]
    vectors: np.ndarray


@dataclass
class TrainingSet:
    """`contents`: every training passage. `maker` makes contrastive pairs from them.

    `taught`: the texts that the teacher embedded (passages, sentences, titles, pseudo-queries).
    """

    contents: list[str]
    maker: QueryMaker
    taught: TextSet


def split_titles(passages: list[Passage], seed: int, share: float) -> tuple[list[Passage], list[Passage]]:
    """Shuffles and splits into (training, validation) by title, so that no article is in both."""
    order = list(passages)
    random.Random(seed).shuffle(order)
    train, valid = [], []
    for p in order:
        digest = hashlib.sha256(f"{seed}:{p.title.lower()}".encode()).digest()
        (valid if int.from_bytes(digest[:4], "big") < share * 2**32 else train).append(p)
    return train, valid


def encode_cached(cache: Path, name: str, texts: list[str], teacher: Teacher) -> TextSet:
    """Teacher embeddings of `texts`, read from `cache` if the same texts were embedded before."""
    digest = hashlib.sha256(json.dumps([texts, teacher.max_tokens]).encode()).hexdigest()[:16]
    path = cache / f"{name}-{digest}.npy"
    if path.exists():
        return TextSet(texts, np.load(path))
    vectors = teacher.encode(texts, name).astype(np.float16)
    cache.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npy")
    np.save(partial, vectors)
    partial.replace(path)
    return TextSet(texts, vectors)


def join(sets: list[TextSet]) -> TextSet:
    return TextSet([t for s in sets for t in s.texts], np.concatenate([s.vectors for s in sets]))


def build_training_set(
    passages: list[Passage], teacher: Teacher, cache: Path, seed: int, chunks: int, taught_chunks: int, view_chunks: int
) -> TrainingSet:
    """Splits the passages into `chunks` equal parts. The teacher embeds the passages of the first
    `taught_chunks` parts and the views of the first `view_chunks` parts."""
    maker = QueryMaker(passages, seed)
    views = []
    for i, p in enumerate(passages):
        titles = [p.title] if p.title else []
        views.append((titles, maker.sentence(i), [maker.query(i).text for _ in range(QUERIES_PER_PASSAGE)]))
    bounds = np.linspace(0, len(passages), chunks + 1).astype(int)
    taught: list[TextSet] = []
    for c, (low, high) in enumerate(zip(bounds[:-1], bounds[1:])):
        rows = views[low:high]
        if c < view_chunks:
            taught.append(encode_cached(cache, f"queries-{c}", [q for _, _, qs in rows for q in qs], teacher))
            taught.append(encode_cached(cache, f"short-{c}", [t for ts, s, _ in rows for t in (*ts, s)], teacher))
        if c >= taught_chunks:
            continue
        taught.append(encode_cached(cache, f"passages-{c}", [p.contents for p in passages[low:high]], teacher))
    return TrainingSet([p.contents for p in passages], maker, join(taught))


@dataclass
class ValidationSet:
    """Held-out inverse cloze pairs and pseudo-queries.

    `query_gold` [queries, 2]: rows of the gold passages in `passages`; -1 if there is no second one.
    """

    cloze_queries: TextSet
    cloze_passages: TextSet
    queries: TextSet
    query_gold: np.ndarray
    passages: TextSet


def build_validation_set(passages: list[Passage], teacher: Teacher, cache: Path, seed: int) -> ValidationSet:
    cq, cp = cloze(passages, seed)
    maker = QueryMaker(passages, seed + 1)
    queries = [maker.query(i) for i in range(len(passages))]
    return ValidationSet(
        encode_cached(cache, "valid-cloze-queries", cq, teacher),
        encode_cached(cache, "valid-cloze-passages", cp, teacher),
        encode_cached(cache, "valid-queries", [q.text for q in queries], teacher),
        np.array([(*q.gold, -1)[:2] for q in queries], np.int64),
        encode_cached(cache, "valid-passages", [p.contents for p in passages], teacher),
    )
