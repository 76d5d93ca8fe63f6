"""Makes a Qwen3 reranker with random weights and scores pairs as the model card of Qwen3-Reranker does. Input: {"tokenizer": path of
tokenizer.json, "folder": path of the checkpoint, "tied": whether the head is the word table, "pairs": [[query, passage]],
"maxTokens": n}; output: the probability of yes for each pair, and the logit of yes minus that of no."""

import json
import shutil
import sys

import torch
from tokenizers import Tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

request = json.load(sys.stdin)
torch.set_num_threads(1)
torch.manual_seed(7)
tokenizer = Tokenizer.from_file(request["tokenizer"])
model = Qwen3ForCausalLM(
    Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=48,
        intermediate_size=256,
        initializer_range=0.15,
        tie_word_embeddings=request["tied"],
    )
).eval()
model.save_pretrained(request["folder"])
shutil.copy(request["tokenizer"], request["folder"] + "/tokenizer.json")
with open(request["folder"] + "/tokenizer_config.json", "w") as file:
    json.dump({"model_max_length": 131072}, file)

# From here on as https://huggingface.co/Qwen/Qwen3-Reranker-0.6B has it, a text at a time in place of padded ones.
prefix = '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
suffix = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
task = "Given a web search query, retrieve relevant passages that answer the query"


def encode(text):
    return tokenizer.encode(text, add_special_tokens=False).ids


prefix_tokens, suffix_tokens = encode(prefix), encode(suffix)
token_true_id, token_false_id = tokenizer.token_to_id("yes"), tokenizer.token_to_id("no")
result = []
with torch.no_grad():
    for query, doc in request["pairs"]:
        ids = encode("<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {doc}".format(instruction=task, query=query, doc=doc))
        ids = ids[: request["maxTokens"] - len(prefix_tokens) - len(suffix_tokens)]
        inputs = torch.tensor([prefix_tokens + ids + suffix_tokens])
        batch_scores = model(input_ids=inputs).logits[:, -1, :]
        true_vector, false_vector = batch_scores[:, token_true_id], batch_scores[:, token_false_id]
        scores = torch.nn.functional.log_softmax(torch.stack([false_vector, true_vector], dim=1), dim=1)[:, 1].exp()
        result.append([scores[0].item(), (true_vector - false_vector)[0].item()])
json.dump(result, sys.stdout)
