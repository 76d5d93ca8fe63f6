"""Splits KILT pages as RAG-R1's preparation does, on one thread: prepare_rag_r1.py PAGES.jsonl OUT.tsv. Prints the number of passages."""
import json
import sys

WORDS = 100


def main(pages, out):
    rows = 0
    with open(pages, encoding="utf-8") as lines, open(out, "w", encoding="utf-8") as file:
        for line in lines:
            page = json.loads(line)
            text = "".join(page["text"]).replace("BULLET::::", "").replace("Section::::", "")
            words = text.split()
            for start in range(0, len(words), WORDS):
                file.write(f"{rows}\t{page['wikipedia_title']}   {' '.join(words[start:start + WORDS])}\n")
                rows += 1
    print(rows)


main(*sys.argv[1:3])
