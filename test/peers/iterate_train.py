"""Trains a small BERT as retrievers are trained, with the rows of `trawl mine`. Input: {"tokenizer": path of a tokenizer.json, "to":
folder, "from": folder or null (random weights), "rows": path of rows in FlagEmbedding's format or null, "epochs": number}. Writes a
checkpoint as Transformers does, without modules of sentence-transformers. Output: {"losses": mean loss of each epoch}."""

import json
import pathlib
import random
import shutil
import sys

import tokenizers
import torch
import transformers as tf

CONFIG = dict(
    vocab_size=30522,
    hidden_size=96,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=96,
    max_position_embeddings=128,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
BATCH = 64
TEMPERATURE = 0.05

request = json.load(sys.stdin)
tf.logging.set_verbosity_error()
tf.logging.disable_progress_bar()
torch.manual_seed(7)
torch.set_num_threads(2)
order = random.Random(7)

if request["from"] is None:
    model = tf.BertModel(tf.BertConfig(**CONFIG), add_pooling_layer=False)
else:
    model = tf.BertModel.from_pretrained(request["from"], add_pooling_layer=False)
tokenizer = tokenizers.Tokenizer.from_file(request["tokenizer"])
tokenizer.enable_truncation(40)
tokenizer.enable_padding()


def embed(texts):
    """Mean over the attended tokens, normalised."""
    encoded = tokenizer.encode_batch(texts)
    ids = torch.tensor([each.ids for each in encoded])
    mask = torch.tensor([each.attention_mask for each in encoded])
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    sums = (hidden * mask.unsqueeze(-1)).sum(1)
    return torch.nn.functional.normalize(sums / mask.sum(1, keepdim=True), dim=-1)


losses = []
if request["rows"] is not None:
    rows = [json.loads(line) for line in open(request["rows"], encoding="utf8")]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(request["epochs"]):
        order.shuffle(rows)
        total = 0.0
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            passages = [row["pos"][0] for row in batch] + [order.choice(row["neg"]) for row in batch]
            scores = embed([row["query"] for row in batch]) @ embed(passages).T / TEMPERATURE
            # Other rows with the same positive are no negatives.
            same = torch.tensor([[passage == row["pos"][0] for passage in passages] for row in batch])
            own = torch.eye(len(batch), len(passages), dtype=torch.bool)
            scores = scores.masked_fill(same & ~own, float("-inf"))
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(batch)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        losses.append(total / len(rows))

to = pathlib.Path(request["to"])
model.save_pretrained(to)
shutil.copy(request["tokenizer"], to / "tokenizer.json")
json.dump({"losses": losses}, sys.stdout)
