"""DPR's rule for answers in passages: has_answer of dpr/data/qa_validation.py with match_type "string", and SimpleTokenizer of
dpr/utils/tokenizers.py, by their published patterns. Input: {"passages", "questions": a list of {"answers", "passages": indexes}};
output: for each question, whether each of its passages has an answer."""

import json
import sys
import unicodedata

import regex

TOKEN = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", flags=regex.IGNORECASE + regex.UNICODE + regex.MULTILINE)


def words(text):
    return [match.group().lower() for match in TOKEN.finditer(unicodedata.normalize("NFD", text))]


def has(passage, answer):
    return any(passage[i : i + len(answer)] == answer for i in range(len(passage) - len(answer) + 1))


request = json.load(sys.stdin)
passages = [words(text) for text in request["passages"]]
json.dump(
    [
        [any(has(passages[at], answer) for answer in map(words, question["answers"])) for at in question["passages"]]
        for question in request["questions"]
    ],
    sys.stdout,
)
