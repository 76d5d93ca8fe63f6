"""numpy: a matrix product per block of rows, and argpartition for the best k of each block."""

from protocol import read_rows, serve

# The scores of a block take 64 MiB for 256 queries.
BLOCK_ROWS = 65_536


class Numpy:
    def __init__(self, threads):
        import numpy  # its BLAS reads the number of threads from the environment

        self.numpy = numpy
        self.version = f"numpy {numpy.__version__}"

    def load(self, path):
        self.matrix = read_rows(path)

    def search(self, queries, k):
        np = self.numpy
        rows = np.empty((len(queries), 0), dtype=np.int64)
        scores = np.empty((len(queries), 0), dtype=np.float32)
        for first in range(0, len(self.matrix), BLOCK_ROWS):
            block = queries @ self.matrix[first : first + BLOCK_ROWS].T
            best, best_scores = top_k(np, block, k)
            rows = np.concatenate([rows, best + first], axis=1)
            scores = np.concatenate([scores, best_scores], axis=1)
        best, scores = top_k(np, scores, k)
        rows = np.take_along_axis(rows, best, axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def top_k(np, scores, k):
    """Positions and scores of the k largest of each line, unordered."""
    width = scores.shape[1]
    if width <= k:
        return np.broadcast_to(np.arange(width), scores.shape), scores
    best = np.argpartition(scores, width - k, axis=1)[:, width - k :]
    return best, np.take_along_axis(scores, best, axis=1)


serve(Numpy)
