"""Truncates vectors of a nomic BERT with random weights as the model card of nomic-embed-text-v1.5 does. Input: {"tokenizer": path of
tokenizer.json, "folder": path of the checkpoint, "texts": [text], "dimensions": [n]}; output: for each dimension the vectors."""

import json
import shutil
import sys

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import NomicBertConfig, NomicBertModel

request = json.load(sys.stdin)
torch.manual_seed(11)
tokenizer = Tokenizer.from_file(request["tokenizer"])
config = NomicBertConfig(
    vocab_size=tokenizer.get_vocab_size(),
    hidden_size=96,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=192,
    initializer_range=0.2,
)
model = NomicBertModel(config, add_pooling_layer=False).eval()
with torch.no_grad():
    for name, weight in model.named_parameters():
        # A mean other than zero in each vector, which the layer norm takes away.
        if "norm" in name.lower() and name.endswith("bias"):
            weight.normal_(0.3, 0.2)
model.save_pretrained(request["folder"])
shutil.copy(request["tokenizer"], request["folder"] + "/tokenizer.json")
result = []
with torch.no_grad():
    pooled = torch.stack(
        [model(input_ids=torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].mean(0) for text in request["texts"]]
    )
    for matryoshka_dim in request["dimensions"]:
        # As https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 has it.
        embeddings = F.layer_norm(pooled, normalized_shape=(pooled.shape[1],))
        embeddings = embeddings[:, :matryoshka_dim]
        embeddings = F.normalize(embeddings, p=2, dim=1)
        result.append(embeddings.tolist())
json.dump(result, sys.stdout)
