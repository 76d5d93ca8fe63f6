"""usearch: exact search over a float32 matrix."""

from protocol import read_rows, serve


class Usearch:
    def __init__(self, threads):
        import usearch
        from usearch.index import MetricKind, search

        self.threads = threads
        self.exact_search = search
        self.metric = MetricKind.IP
        self.version = f"usearch {usearch.__version__}"

    def load(self, path):
        self.matrix = read_rows(path)

    def search(self, queries, k):
        found = self.exact_search(self.matrix, queries, k, self.metric, exact=True, threads=self.threads)
        # The distance of this metric is 1 - inner product.
        return found.keys.astype("int64"), 1 - found.distances


serve(Usearch)
