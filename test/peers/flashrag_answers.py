"""The rule for answers in passages of FlashRAG's Retrieval_Recall (flashrag/evaluator/metrics.py), with normalize_answer of
flashrag/evaluator/utils.py, as published. Input: {"passages", "questions": a list of {"answers", "passages": indexes}};
output: for each question, whether each of its passages has an answer."""

import json
import re
import string
import sys


def normalize_answer(text):
    text = "".join(char for char in text.lower() if char not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


request = json.load(sys.stdin)
passages = [normalize_answer(text) for text in request["passages"]]
json.dump(
    [
        [any(answer in passages[at] for answer in map(normalize_answer, question["answers"])) for at in question["passages"]]
        for question in request["questions"]
    ],
    sys.stdout,
)
