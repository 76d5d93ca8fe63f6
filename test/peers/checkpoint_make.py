"""Writes checkpoints with random weights and the outputs that torch computes with them. Input: {"folder": path, "tokenizer":
path of a tokenizer.json}; output: for each checkpoint its name, inputs, and outputs as shape and path of float32 values."""

import json
import pathlib
import shutil
import sys

import torch
import transformers as tf

VOCABULARY = 1000
BASE = dict(vocab_size=VOCABULARY, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
SMALL = dict(vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128)
ROBERTA = dict(max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5)

# Qwen3-Embedding-0.6B with fewer layers.
QWEN3 = dict(
    vocab_size=VOCABULARY,
    hidden_size=1024,
    num_hidden_layers=4,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
    intermediate_size=3072,
    rope_parameters={"rope_type": "default", "rope_theta": 1_000_000},
)

# name: model, dtype of the saved weights, maximum shard size
CASES = {
    "bert-base": (lambda: tf.BertModel(tf.BertConfig(**BASE)), torch.float32, "50GB"),
    "roberta-base": (lambda: tf.RobertaModel(tf.RobertaConfig(**BASE, **ROBERTA)), torch.float16, "50MB"),
    "xlm-roberta-base": (
        lambda: tf.XLMRobertaModel(tf.XLMRobertaConfig(**BASE, **ROBERTA), add_pooling_layer=False),
        torch.bfloat16,
        "50GB",
    ),
    "bert-gelu-new": (lambda: tf.BertModel(tf.BertConfig(**SMALL, hidden_act="gelu_new")), torch.float32, "50GB"),
    "bert-mlm": (lambda: tf.BertForMaskedLM(tf.BertConfig(**SMALL)), torch.float32, "50GB"),
    "dpr": (lambda: tf.DPRQuestionEncoder(tf.DPRConfig(**SMALL)), torch.float32, "50GB"),
    "qwen3": (lambda: tf.Qwen3Model(tf.Qwen3Config(**QWEN3)), torch.bfloat16, "50MB"),
    "qwen3-bias": (
        lambda: tf.Qwen3ForCausalLM(
            tf.Qwen3Config(**{**QWEN3, "hidden_size": 64, "num_key_value_heads": 4, "attention_bias": True})
        ),
        torch.float32,
        "50GB",
    ),
    "bert-scores": (
        lambda: tf.BertForSequenceClassification(tf.BertConfig(**SMALL, num_labels=1)),
        torch.float32,
        "50GB",
    ),
    "xlm-roberta-scores": (
        lambda: tf.XLMRobertaForSequenceClassification(tf.XLMRobertaConfig(**SMALL, **ROBERTA, num_labels=1)),
        torch.float32,
        "50GB",
    ),
}
OUTPUTS = ("last_hidden_state", "pooler_output", "logits")


def widen(model):
    """Makes the weights more like trained ones: a wider spread than after initialisation, and biases other than zero."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_(0, 0.2)
            elif "norm" in name.lower():
                weight.normal_(1, 0.2)
            else:
                weight.normal_(0, 0.04)
    return model.eval()


def main():
    request = json.load(sys.stdin)
    root = pathlib.Path(request["folder"])
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    torch.manual_seed(17)
    ids = torch.randint(5, 119, (3, 24))
    mask = torch.ones_like(ids)
    mask[1, 15:] = 0
    mask[2, 3:] = 0
    result = []
    for name, (make, dtype, shards) in CASES.items():
        if request.get("only", "") not in name:
            continue
        model = widen(make())
        folder = root / name
        model.to(dtype).save_pretrained(folder, max_shard_size=shards)
        # Not to(float32): the buffers, such as the frequencies of rotary positions, were rounded too.
        model = type(model).from_pretrained(folder, dtype=torch.float32).eval()
        shutil.copy(request["tokenizer"], folder / "tokenizer.json")
        inputs = ids.clone()
        inputs[mask == 0] = model.config.pad_token_id or 0
        types = torch.zeros_like(inputs)
        type_count = getattr(model.config, "type_vocab_size", 0)
        if type_count > 1:
            types[:, 7:] = 1
        encoder = model.question_encoder.bert_model if name == "dpr" else model if name.endswith("-scores") else model.base_model
        given = dict(input_ids=inputs, attention_mask=mask)
        with torch.no_grad():
            outputs = encoder(**given, token_type_ids=types) if type_count > 0 else encoder(**given)
        written = {}
        for output in OUTPUTS:
            values = outputs.get(output)
            if values is None or (name in ("bert-mlm", "dpr") and output == "pooler_output"):
                continue
            path = root / f"{name}.{output}.f32"
            values.contiguous().numpy().tofile(path)
            written[output] = {"shape": list(values.shape), "path": str(path)}
        result.append(
            {
                "name": name,
                "folder": str(folder),
                "inputs": {
                    "input_ids": inputs.tolist(),
                    "attention_mask": mask.tolist(),
                    "token_type_ids": types.tolist(),
                },
                "outputs": written,
            }
        )
    json.dump(result, sys.stdout)


main()
