"""Evaluates TREC runs. Input: a list of {"qrels": text, "run": text, "measures"}; output: for each run, query → measure → value."""

import io
import json
import sys

import pytrec_eval

replies = []
for case in json.load(sys.stdin):
    qrels = pytrec_eval.parse_qrel(io.StringIO(case["qrels"]))
    run = pytrec_eval.parse_run(io.StringIO(case["run"]))
    replies.append(pytrec_eval.RelevanceEvaluator(qrels, set(case["measures"])).evaluate(run))
json.dump(replies, sys.stdout)
