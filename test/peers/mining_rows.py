"""Mines hard negatives with sentence-transformers over given vectors.

Input: {"anchors", "positives": texts, row by row, "corpus": texts, "queryVectors", "corpusVectors": text -> values,
"runs": [arguments of mine_hard_negatives], "pairScores"?: anchor -> text -> score of a cross-encoder}.
Output: the rows of each run, each a list of column values.
"""

import contextlib
import json
import sys

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers.util import mine_hard_negatives

request = json.load(sys.stdin)


class GivenVectors:
    """Stands in for a model: it has the vectors of the request."""

    device = torch.device("cpu")

    def encode_query(self, texts, **_):
        return np.array([request["queryVectors"][text] for text in texts], dtype=np.float32)

    def encode_document(self, texts, **_):
        return np.array([request["corpusVectors"][text] for text in texts], dtype=np.float32)

    def similarity(self, a, b):
        return torch.as_tensor(a) @ torch.as_tensor(b).T

    def similarity_pairwise(self, a, b):
        return (torch.as_tensor(a) * torch.as_tensor(b)).sum(dim=1)


class GivenScores:
    """Stands in for a cross-encoder: it has the scores of the request."""

    def predict(self, pairs, **_):
        return torch.tensor([request["pairScores"][anchor][text] for anchor, text in pairs], dtype=torch.float32)


pairs = Dataset.from_dict({"anchor": request["anchors"], "positive": request["positives"]})
results = []
# It prints statistics, and the output of this script is JSON.
with contextlib.redirect_stdout(sys.stderr):
    for run in request["runs"]:
        judge = {"cross_encoder": GivenScores()} if run.pop("judge", False) else {}
        mined = mine_hard_negatives(pairs, GivenVectors(), corpus=request["corpus"], verbose=False, **judge, **run)
        results.append([list(row.values()) for row in mined])
json.dump(results, sys.stdout)
