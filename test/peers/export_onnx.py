"""Exports encoders of Transformers with random weights to ONNX by torch, as exporters do, and computes the vectors of texts with torch.

Input: {"folder": path, "tokenizer": path of a tokenizer.json, "texts": [text]}; output: for each model its name, folder and vectors,
which are not normalised. The vectors of Qwen3 are computed in one batch that is padded on the left.
"""

import json
import pathlib
import shutil
import sys

import torch
import transformers as tf
from tokenizers import Tokenizer

LOWEST = torch.finfo(torch.float32).min
SIZES = dict(vocab_size=120, hidden_size=64, num_hidden_layers=4, intermediate_size=96, attn_implementation="eager")


class Past:
    """Keys and values of earlier tokens, by layer."""

    def __init__(self, pairs):
        self.pairs = pairs
        self.present = []

    def update(self, keys, values, layer, *_):
        earlier_keys, earlier_values = self.pairs[layer]
        joined = torch.cat([earlier_keys, keys], 2), torch.cat([earlier_values, values], 2)
        self.present.extend(joined)
        return joined


def additive(allowed):
    return torch.where(allowed, 0.0, LOWEST)


class Decoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, position_ids, *past):
        total = attention_mask.shape[1]
        keys = torch.arange(total)[None, None, None, :]
        queries = (torch.arange(input_ids.shape[1]) + total - input_ids.shape[1])[None, None, :, None]
        allowed = (keys <= queries) & (attention_mask[:, None, None, :] == 1)
        cache = Past(list(zip(past[0::2], past[1::2])))
        hidden = self.model(
            input_ids=input_ids,
            attention_mask={"full_attention": additive(allowed)},
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        return (hidden, *cache.present)


class Encoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        at = torch.arange(input_ids.shape[1])
        near = (at[:, None] - at[None, :]).abs() <= self.model.config.local_attention // 2
        given = attention_mask[:, None, None, :] == 1
        full = given & torch.ones_like(near)[None, None]
        masks = {"full_attention": additive(full), "sliding_attention": additive(full & near[None, None])}
        return self.model(input_ids=input_ids, attention_mask=masks).last_hidden_state


def random_weights(model):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1 if "norm" in name else 0, 0.2)
    return model.eval()


def padded(rows, left):
    length = max(map(len, rows))
    pads = [[0] * (length - len(row)) for row in rows]
    ids = [pad + row if left else row + pad for row, pad in zip(rows, pads)]
    masks = [[0] * len(pad) + [1] * len(row) if left else [1] * len(row) + [0] * len(pad) for row, pad in zip(rows, pads)]
    return torch.tensor(ids), torch.tensor(masks)


def save(model, folder, request, pooling):
    model.config.save_pretrained(folder)
    shutil.copy(request["tokenizer"], folder / "tokenizer.json")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))


def export(module, arguments, path, inputs, outputs, axes):
    torch.onnx.export(
        module,
        arguments,
        str(path),
        input_names=inputs,
        output_names=outputs,
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )


def qwen3(request, rows, folder):
    config = tf.Qwen3Config(num_attention_heads=8, num_key_value_heads=4, head_dim=16, max_position_embeddings=512, **SIZES)
    model = random_weights(tf.Qwen3Model(config))
    folder.mkdir()
    layers = range(config.num_hidden_layers)
    past = [f"past_key_values.{i}.{part}" for i in layers for part in ("key", "value")]
    present = [f"present.{i}.{part}" for i in layers for part in ("key", "value")]
    axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "position_ids", "last_hidden_state")}
    axes["attention_mask"] = {0: "batch", 1: "total"}
    axes.update({name: {0: "batch", 2: "past"} for name in past}, **{name: {0: "batch", 2: "total"} for name in present})
    earlier = [torch.randn(2, config.num_key_value_heads, 3, config.head_dim) for _ in past]
    positions = torch.arange(3, 8).repeat(2, 1)
    sample = (torch.randint(5, 119, (2, 5)), torch.ones(2, 8, dtype=torch.int64), positions, *earlier)
    inputs = ["input_ids", "attention_mask", "position_ids", *past]
    export(Decoder(model), sample, folder / "model.onnx", inputs, ["last_hidden_state", *present], axes)
    save(model, folder, request, "lasttoken")
    ids, mask = padded(rows, left=True)
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0)).last_hidden_state
    return hidden[:, -1]


def modernbert(request, rows, folder):
    tokens = dict.fromkeys(["pad_token_id", "bos_token_id", "cls_token_id", "eos_token_id", "sep_token_id"], 0)
    config = tf.ModernBertConfig(num_attention_heads=4, local_attention=8, max_position_embeddings=512, **tokens, **SIZES)
    model = random_weights(tf.ModernBertModel(config))
    folder.mkdir()
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "batch", 1: "sequence"} for name in [*names, "last_hidden_state"]}
    sample = (torch.randint(5, 119, (2, 20)), torch.ones(2, 20, dtype=torch.int64))
    export(Encoder(model), sample, folder / "model.onnx", names, ["last_hidden_state"], axes)
    save(model, folder, request, "mean")
    ids, mask = padded(rows, left=False)
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    weights = mask[:, :, None].float()
    return (hidden * weights).sum(1) / weights.sum(1)


def main():
    request = json.load(sys.stdin)
    root = pathlib.Path(request["folder"])
    tf.logging.set_verbosity_error()
    torch.manual_seed(23)
    tokenizer = Tokenizer.from_file(request["tokenizer"])
    rows = [tokenizer.encode(text).ids for text in request["texts"]]
    result = []
    for name, make in (("qwen3", qwen3), ("modernbert", modernbert)):
        folder = root / name
        vectors = make(request, rows, folder)
        result.append({"name": name, "folder": str(folder), "vectors": vectors.tolist()})
    json.dump(result, sys.stdout)


main()
