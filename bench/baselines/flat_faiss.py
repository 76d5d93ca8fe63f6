"""faiss-cpu: IndexFlatIP."""

from protocol import read_chunks, read_header, serve


class Faiss:
    def __init__(self, threads):
        import faiss

        self.faiss = faiss
        faiss.omp_set_num_threads(threads)
        self.version = f"faiss-cpu {faiss.__version__}"

    def load(self, path):
        _, dimension, dtype, _ = read_header(path)
        if dtype == "<f4":
            self.index = self.faiss.read_index(path)
            return
        self.index = self.faiss.IndexFlatIP(dimension)
        for _, chunk in read_chunks(path):
            self.index.add(chunk)

    def search(self, queries, k):
        scores, rows = self.index.search(queries, k)
        return rows, scores


serve(Faiss)
