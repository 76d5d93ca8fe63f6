"""SQLite's FTS5: a contentless table, ordered by its rank. k1 is 1.2 and b 0.75, which FTS5 cannot change."""

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

from bm25_protocol import serve_bm25


class Fts5:
    def __init__(self):
        self.version = f"SQLite {sqlite3.sqlite_version} FTS5"

    def build(self, texts, folder):
        os.makedirs(folder)
        path = os.path.join(folder, "fts5.sqlite")
        database = sqlite3.connect(path)
        database.execute("PRAGMA journal_mode = OFF")
        # Any character but a space belongs to a term: the terms are ready.
        tokenizer = "unicode61 remove_diacritics 0 categories 'L* N* S* P* M* Co Cf'"
        database.execute(f'CREATE VIRTUAL TABLE passages USING fts5(terms, content="", tokenize="{tokenizer}")')
        with database:
            database.executemany("INSERT INTO passages(rowid, terms) VALUES (?, ?)", enumerate(texts))
            database.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        database.close()
        return os.stat(path).st_size

    def load(self, folder, k1, b):
        self.path = os.path.join(folder, "fts5.sqlite")
        self.connections = [self.connect()]

    def connect(self):
        return sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True, check_same_thread=False)

    def query(self, text):
        return " OR ".join('"' + term.replace('"', '""') + '"' for term in dict.fromkeys(text.split(" ")) if term)

    def search_all(self, queries, k, threads, end):
        """Until `end`, a time of perf_counter; None: all."""
        while len(self.connections) < threads:
            self.connections.append(self.connect())
        todo = enumerate(queries)
        found = {}

        def work(connection):
            while end is None or time.perf_counter() < end:
                place, query = next(todo, (None, None))
                if query is None:
                    return
                found[place] = self.search(connection, query, k)

        if threads == 1:
            work(self.connections[0])
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, self.connections[:threads]))
        return [found[place] for place in sorted(found)]

    def search(self, connection, query, k):
        if query == "":
            return []
        statement = "SELECT rowid, -rank FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        return connection.execute(statement, (query, k)).fetchall()


serve_bm25(Fts5)
