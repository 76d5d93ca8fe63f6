"""Stems words with the Snowball project's Python package. Input: {"language", "words"}. Output: the stems."""

import json
import sys

import snowballstemmer

request = json.load(sys.stdin)
stemmer = snowballstemmer.stemmer(request["language"])
json.dump(stemmer.stemWords(request["words"]), sys.stdout)
