"""Token ids of the reference tokeniser. Input: {"tokenizer": path, "texts": path of a file with a JSON string per line}; output: a list of ids per text."""

import json
import sys

from tokenizers import Tokenizer

request = json.load(sys.stdin)
tokenizer = Tokenizer.from_file(request["tokenizer"])
tokenizer.no_truncation()
tokenizer.no_padding()
with open(request["texts"], encoding="utf-8") as file:
    texts = [json.loads(line) for line in file]
json.dump([encoding.ids for encoding in tokenizer.encode_batch(texts)], sys.stdout)
