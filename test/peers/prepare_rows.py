"""Splits KILT pages as the programs of other projects do. Written from the descriptions of those programs; FlashRAG's chunks
come from chonkie itself. Reads one JSON object and prints one."""
import html
import json
import sys


def kilt_pages(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def rag_r1(path):
    """Rows of the TSV: id, tab, title, three spaces, at most a hundred words."""
    rows = []
    for page in kilt_pages(path):
        text = "".join(page["text"])
        for marker in ("BULLET::::", "Section::::"):
            text = text.replace(marker, "")
        words = text.split()
        while words:
            head, words = words[:100], words[100:]
            rows.append(str(len(rows)) + "\t" + page["wikipedia_title"] + "   " + " ".join(head))
    return rows


def dpr(path):
    """Rows of psgs_w100.tsv: id, text, title; the rule as docs/corpora.md states it."""
    rows = []
    for page in kilt_pages(path):
        title = html.unescape(page["wikipedia_title"])
        lower = title.lower()
        if "(disambiguation)" in lower or title.startswith(("List of ", "Index of ", "Outline of ")):
            continue
        kept = [html.unescape(p) for p in page["text"] if not p.startswith(("Section::::", "BULLET::::"))]
        words = "".join(kept).split()
        if page["text"][0].strip() != title:
            words = title.split() + words
        if len(words) < 100:
            continue
        total = -(-len(words) // 100) * 100
        filled = [words[i % len(words)] for i in range(total)]
        for start in range(0, total, 100):
            rows.append([str(len(rows) + 1), " ".join(filled[start : start + 100]), title])
    return rows


def flashrag(path, size):
    """Rows of chunk_doc_corpus.py --chunk_by word over pages whose contents are title, line end, text."""
    import chonkie

    chunker = chonkie.TokenChunker(tokenizer="word", chunk_size=size)
    rows = []
    for page in kilt_pages(path):
        for chunk in chunker.chunk("".join(page["text"])):
            rows.append({"id": len(rows), "title": page["wikipedia_title"],
                         "contents": page["wikipedia_title"] + "\n" + chunk.text})
    return rows


def main():
    request = json.load(sys.stdin)
    if "texts" in request:
        reply = {
            "words": [text.split() for text in request["texts"]],
            "stripped": [text.strip() for text in request["texts"]],
            "unescaped": [html.unescape(text) for text in request["texts"]],
        }
    else:
        path = request["path"]
        reply = {"ragR1": rag_r1(path), "dpr": dpr(path), "flashrag": flashrag(path, request["size"])}
    json.dump(reply, sys.stdout)


main()
