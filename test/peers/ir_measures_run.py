"""Evaluates runs with ir_measures. Input: {"measures", "cases": a list of {"qrels": [query, id, grade], "run": [query, id, score]}};
output: for each case, query → measure → value, all digits."""

import json
import sys

import ir_measures

request = json.load(sys.stdin)
measures = [ir_measures.parse_measure(name) for name in request["measures"]]
replies = []
for case in request["cases"]:
    qrels = [ir_measures.Qrel(query, document, grade) for query, document, grade in case["qrels"]]
    run = [ir_measures.ScoredDoc(query, document, score) for query, document, score in case["run"]]
    values = {}
    for query, measure, value in ir_measures.iter_calc(measures, qrels, run):
        values.setdefault(query, {})[str(measure)] = value
    replies.append(values)
json.dump(replies, sys.stdout)
