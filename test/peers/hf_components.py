"""Words and ids of the reference tokeniser. Input: {"words": [{"normalizer", "pre_tokenizer"}], "files": [tokenizer.json], "texts": path of
a file with a JSON string per line}; output: {"words": a list of words per component and text, "ids": a list of ids per file and text}."""

import json
import sys

from tokenizers import Tokenizer

BASE = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
}


def words(parts, texts):
    tokenizer = Tokenizer.from_str(json.dumps({**BASE, **parts}))
    result = []
    for text in texts:
        if tokenizer.normalizer is not None:
            text = tokenizer.normalizer.normalize_str(text)
        split = tokenizer.pre_tokenizer
        result.append([text] if split is None else [word for word, _ in split.pre_tokenize_str(text)])
    return result


def ids(file, texts):
    tokenizer = Tokenizer.from_str(json.dumps(file))
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def answer(request, texts):
    return {
        "words": [words(parts, texts) for parts in request["words"]],
        "ids": [ids(file, texts) for file in request["files"]],
    }


if __name__ == "__main__":
    request = json.load(sys.stdin)
    with open(request["texts"], encoding="utf-8") as file:
        texts = [json.loads(line) for line in file]
    json.dump(answer(request, texts), sys.stdout)
