"""usearch: its HNSW graph over float32 vectors, with inner product."""

from approximate_protocol import serve_graph


class UsearchHnsw:
    def __init__(self, threads):
        import usearch
        from usearch.index import Index, MetricKind, ScalarKind

        self.make, self.metric, self.kind = Index, MetricKind.IP, ScalarKind.F32
        self.threads = threads
        self.version = f"usearch {usearch.__version__} HNSW"

    def build(self, matrix, neighbours, effort):
        import numpy

        self.index = self.make(
            ndim=matrix.shape[1], metric=self.metric, dtype=self.kind, connectivity=neighbours, expansion_add=effort
        )
        self.index.add(numpy.arange(len(matrix), dtype=numpy.uint64), matrix, threads=self.threads)

    def prepare(self, effort):
        self.index.expansion_search = effort

    def search(self, queries, k):
        # A graph walks with one thread a query; more would only be started and stopped.
        threads = min(len(queries), self.threads)
        return self.index.search(queries, k, threads=threads).keys.astype("int64")


serve_graph(UsearchHnsw)
