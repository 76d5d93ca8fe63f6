"""Reads a CIFF file with ciff-toolkit and compares it with counts of given terms.

Input: {"ciff", "ids", "terms": the analysed terms of each live passage in row order}.
Output: what differs, and whether protobuf's own encoding of every message has the bytes of the file.
"""

import gzip
import json
import sys
from collections import Counter, defaultdict

from ciff_toolkit.read import CiffReader
from ciff_toolkit.write import CiffWriter

request = json.load(sys.stdin)
path = request["ciff"]

postings = defaultdict(list)
lengths = []
for number, terms in enumerate(request["terms"]):
    lengths.append(len(terms))
    for term, tf in Counter(terms).items():
        postings[term].append((number, tf))

differences = []


def expect(what, found, expected):
    if found != expected and len(differences) < 10:
        differences.append(f"{what}: {repr(found)[:200]}, expected {repr(expected)[:200]}")


with CiffReader(path) as reader:
    header = reader.read_header()
    lists = list(reader.read_postings_lists())
    documents = list(reader.read_documents())
    expect("bytes after the last document", reader.fp.read(1), b"")

expect("version", header.version, 1)
expect("total_docs", (header.num_docs, header.total_docs), (len(lengths), len(lengths)))
expect("total_postings_lists", (header.num_postings_lists, header.total_postings_lists), (len(postings), len(postings)))
expect("total_terms_in_collection", header.total_terms_in_collection, sum(lengths))
expect("average_doclength", header.average_doclength, sum(lengths) / len(lengths))
expect("order of terms", [found.term for found in lists], sorted(postings, key=lambda term: term.encode()))
for found in lists:
    number = 0
    decoded = []
    for posting in found.postings:
        number += posting.docid
        decoded.append((number, posting.tf))
    expected = postings.get(found.term, [])
    expect(found.term, decoded, expected)
    expect(f"df and cf of {found.term}", (found.df, found.cf), (len(expected), sum(tf for _, tf in expected)))
expect("docids", [document.docid for document in documents], list(range(len(lengths))))
expect("ids", [document.collection_docid for document in documents], request["ids"])
expect("lengths", [document.doclength for document in documents], lengths)

copy = path + ".copy"
with CiffWriter(copy) as writer:
    writer.write_header(header)
    writer.write_postings_lists(lists)
    writer.write_documents(documents)
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as ours, open(copy, "rb") as theirs:
    same_bytes = ours.read() == theirs.read()

json.dump(
    {
        "differences": differences,
        "sameBytes": same_bytes,
        "lists": len(lists),
        "postings": sum(len(found.postings) for found in lists),
    },
    sys.stdout,
)
