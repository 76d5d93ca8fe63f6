"""Makes a cross-encoder with random weights. Input: {"tokenizer": path, "architecture": "bert" | "xlm-roberta", "folder":
path of the checkpoint, "pairs": [[query, passage]], "maxTokens": n}; output: the logit of each pair, computed alone."""

import json
import shutil
import sys

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForSequenceClassification, XLMRobertaConfig, XLMRobertaForSequenceClassification

request = json.load(sys.stdin)
torch.manual_seed(7)
tokenizer = Tokenizer.from_file(request["tokenizer"])
shape = {
    "vocab_size": tokenizer.get_vocab_size(),
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "num_labels": 1,
    "initializer_range": 0.2,
}
if request["architecture"] == "bert":
    model = BertForSequenceClassification(BertConfig(max_position_embeddings=128, **shape))
else:
    config = XLMRobertaConfig(max_position_embeddings=130, type_vocab_size=1, pad_token_id=1, **shape)
    model = XLMRobertaForSequenceClassification(config)
model.eval().save_pretrained(request["folder"])
shutil.copy(request["tokenizer"], request["folder"] + "/tokenizer.json")
tokenizer.enable_truncation(request["maxTokens"], strategy="longest_first")
scores = []
with torch.no_grad():
    for query, passage in request["pairs"]:
        encoding = tokenizer.encode(query, passage)
        inputs = {"input_ids": torch.tensor([encoding.ids]), "attention_mask": torch.tensor([encoding.attention_mask])}
        if request["architecture"] == "bert":
            inputs["token_type_ids"] = torch.tensor([encoding.type_ids])
        scores.append(model(**inputs).logits[0, 0].item())
json.dump(scores, sys.stdout)
