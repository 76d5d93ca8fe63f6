"""The rule of Agentic-R's step 4, written from its description: candidates.json local.jsonl global.jsonl out.jsonl seed.

Beside its columns, a row has `pool`: the negatives that the draw was made from, in their order.
"""

import json
import random
import sys

THRESHOLD, MAX_POSITIVES, GROUP = 0.6, 3, 16


def utilities(path):
    by_round = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            item = json.loads(line)
            by_round[(item["id"], item["round_index"])] = item
    return by_round


def rows_of(dataset, item, turn, local, judged):
    passages = [str(row) for row in turn["candidate_passage_ids"]]
    scores = {
        row: {"em": judged["docid_score"][row]["metric_score"]["em"], "local_utility": local["docid_score"][row] / 100}
        for row in passages
    }
    ranked = sorted(passages, key=lambda row: (scores[row]["em"], scores[row]["local_utility"]), reverse=True)
    best = scores[ranked[0]]
    if best["em"] == 0 or best["local_utility"] < THRESHOLD:
        return
    positives = [row for row in ranked if scores[row] == best]
    pool = [row for row in ranked if scores[row] != best]
    if len(pool) < GROUP - 1:
        return
    drawn = sorted(random.sample(range(len(pool)), GROUP - 1))
    negatives = [pool[i] for i in drawn]
    for positive in positives[:MAX_POSITIVES]:
        chosen = [positive, *negatives]
        yield {
            "dataset": dataset,
            "query_id": item["id"],
            "question": judged["question"],
            "round_index": turn["round_index"],
            "history_queries": judged["history_queries"],
            "query_text": judged["current_query"],
            "passage_ids": chosen,
            "scores": [scores[row] for row in chosen],
            "pool": pool,
        }


def main():
    candidates, local_path, global_path, out, seed = sys.argv[1:]
    random.seed(int(seed))
    local, judged = utilities(local_path), utilities(global_path)
    with open(candidates, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as rows:
        for item in json.load(file):
            for turn in item["trajectory"]:
                key = (item["id"], turn["round_index"])
                if key not in local or key not in judged:
                    continue
                for row in rows_of("hotpotqa", item, turn, local[key], judged[key]):
                    rows.write(json.dumps(row, ensure_ascii=False) + "\n")


main()
