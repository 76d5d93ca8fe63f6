"""faiss-cpu: IndexHNSWFlat with inner product."""

from approximate_protocol import serve_graph


class FaissHnsw:
    def __init__(self, threads):
        import faiss

        self.faiss = faiss
        faiss.omp_set_num_threads(threads)
        self.version = f"faiss-cpu {faiss.__version__} HNSW"

    def build(self, matrix, neighbours, effort):
        self.index = self.faiss.IndexHNSWFlat(matrix.shape[1], neighbours, self.faiss.METRIC_INNER_PRODUCT)
        self.index.hnsw.efConstruction = effort
        self.index.add(matrix)

    def prepare(self, effort):
        self.index.hnsw.efSearch = effort

    def search(self, queries, k):
        return self.index.search(queries, k)[1]


serve_graph(FaissHnsw)
