"""The student: a table of token embeddings, summed over a text and L2-normalised.

The length of a row is the weight of its token. After L2 normalisation the
weighted mean equals the sum of the weighted rows, so one table, float32
[vocabulary, dimension], is the whole model. Gradients are computed by explicit
formulas: pooling is linear and the losses are short.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from tokenizers import Tokenizer


def token_counts(tokenizer: Tokenizer, texts: list[str], max_tokens: int, skip: frozenset[int]) -> sparse.csr_matrix:
    """Sparse matrix [n, vocabulary] of token counts, without the ids in `skip`.

    Truncates texts to `max_tokens`, [SEP] included, as the encoder does.
    """
    indptr, indices = [0], []
    for start in range(0, len(texts), 4096):
        for enc in tokenizer.encode_batch(texts[start : start + 4096]):
            indices += [i for i in enc.ids[: max_tokens - 1] if i not in skip]
            indptr.append(len(indices))
    matrix = sparse.csr_matrix(
        (np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(indptr, np.int64)),
        shape=(len(texts), tokenizer.get_vocab_size()),
    )
    matrix.sum_duplicates()
    return matrix


def normalize_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows scaled to unit length, and their original lengths [n, 1]. A zero row stays zero."""
    norms = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return x / norms, norms


def embed(counts: sparse.csr_matrix, table: np.ndarray) -> np.ndarray:
    """Unit sentence embeddings, float32 [n, dimension]."""
    return normalize_rows(counts @ table)[0]


def lengthen_rare_rows(table: np.ndarray, document_frequency: np.ndarray, well_seen: tuple[int, int]) -> np.ndarray:
    """Lengthens the rows of rare tokens to the median length of more frequent tokens.

    The length of a row is the weight of its token and grows with training. A
    rare token is informative, but its row had few updates. `document_frequency`
    [vocabulary]: number of training passages with the token. The reference is
    the median over tokens with low <= frequency < high, where (low, high) is
    `well_seen`. Rows with frequency < high are lengthened, never shortened.
    """
    low, high = well_seen
    lengths = np.linalg.norm(table, axis=1)
    reference = np.median(lengths[(document_frequency >= low) & (document_frequency < high)])
    factor = np.maximum(1, reference / np.maximum(lengths, 1e-9))
    factor[(document_frequency >= high) | (lengths == 0)] = 1
    return (table * factor[:, None]).astype(np.float32)


def whiten(table: np.ndarray, embeddings: np.ndarray, exponent: float) -> np.ndarray:
    """Partial whitening: divides each principal component of `embeddings` [n, d] by its energy ** exponent.

    The map is linear, so it can be applied to the rows of the table.
    """
    energy, axes = np.linalg.eigh((embeddings.T @ embeddings / len(embeddings)).astype(np.float64))
    transform = (axes * np.maximum(energy, 1e-9) ** -exponent) @ axes.T
    return (table @ transform).astype(np.float32)


class Batch:
    """Forward and backward pass of one batch, restricted to the table rows of its tokens.

    `unit` holds the sentence embeddings [n, dimension]. Each loss adds
    d loss / d unit to `grad`.
    """

    def __init__(self, counts: sparse.csr_matrix, table: np.ndarray) -> None:
        self.rows, columns = np.unique(counts.indices, return_inverse=True)
        shape = (counts.shape[0], len(self.rows))
        self.counts = sparse.csr_matrix((counts.data, columns, counts.indptr), shape=shape)
        self.unit, self.norms = normalize_rows(self.counts @ table[self.rows])
        self.grad = np.zeros_like(self.unit)

    def backward(self) -> np.ndarray:
        """d loss / d table[rows], float32 [len(rows), dimension]."""
        along = (self.grad * self.unit).sum(1, keepdims=True)
        return np.asarray(self.counts.T @ ((self.grad - along * self.unit) / self.norms))

    def cosine_loss(self, rows: slice, target: np.ndarray, weight: float) -> float:
        """weight * mean(1 - cos(student, target)) over `rows`; `target` has unit rows [n, dimension]."""
        n = len(target)
        self.grad[rows] -= weight / n * target
        return weight * (1 - float(np.vdot(self.unit[rows], target)) / n)

    def contrastive_loss(self, q: slice, p: slice, temperature: float, weight: float) -> float:
        """weight * InfoNCE of aligned pairs with in-batch negatives, mean of both directions."""
        queries, passages = self.unit[q], self.unit[p]
        n = len(queries)
        scores = queries @ passages.T / temperature
        scores -= scores.max()
        e = np.exp(scores)
        rows, columns = e.sum(1), e.sum(0)
        diagonal = np.diagonal(scores)
        loss = 0.5 * weight * float((np.log(rows) + np.log(columns) - 2 * diagonal).mean())
        e *= 0.5 * (1 / rows[:, None] + 1 / columns)
        e[np.arange(n), np.arange(n)] -= 1
        e *= weight / (n * temperature)
        self.grad[q] += e @ passages
        self.grad[p] += e.T @ queries
        return loss


class Adam:
    """Adam that updates only the rows of a batch; linear warm-up, then linear decay to zero."""

    def __init__(self, table: np.ndarray, rate: float, steps: int, warmup: int = 30) -> None:
        self.table, self.rate, self.steps, self.warmup = table, rate, steps, warmup
        self.m = np.zeros_like(table)
        self.v = np.zeros_like(table)
        self.seen = np.zeros((len(table), 1), np.float32)  # number of updates per row
        self.t = 0

    def step(self, rows: np.ndarray, grad: np.ndarray) -> None:
        self.t += 1
        scale = min(1.0, self.t / self.warmup) * max(0.0, 1 - (self.t - 1) / self.steps)
        self.seen[rows] += 1
        n = self.seen[rows]
        m = self.m[rows] * 0.9 + 0.1 * grad
        v = self.v[rows] * 0.99 + 0.01 * grad * grad
        self.m[rows], self.v[rows] = m, v
        m /= 1 - 0.9**n
        v /= 1 - 0.99**n
        self.table[rows] -= self.rate * scale * m / (np.sqrt(v) + 1e-8)
