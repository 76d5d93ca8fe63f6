"""Significance by scipy. Input: {"differences": [[…], …]}; output: for each list {"p", "low", "high"}."""

import json
import sys

import numpy as np
from scipy import stats

replies = []
for values in json.load(sys.stdin)["differences"]:
    differences = np.array(values)
    exact = len(differences) <= 13
    test = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf if exact else 99_999,
        rng=np.random.default_rng(1),
        vectorized=True,
    )
    interval = stats.bootstrap(
        (differences,), np.mean, method="percentile", n_resamples=50_000, batch=1000, rng=np.random.default_rng(2)
    ).confidence_interval
    replies.append({"p": float(test.pvalue), "low": float(interval.low), "high": float(interval.high)})
json.dump(replies, sys.stdout)
