"""Writes checkpoints with random weights and the outputs that torch computes with them. Input: {"folder": path, "tokenizer":
path of a tokenizer.json, "layers": number of layers of the checkpoints of BERT-base's width}; output: for each checkpoint its name,
inputs, precisions of its graphs, and outputs as shape and path of float32 values."""

import copy
import json
import pathlib
import shutil
import sys

import torch
import transformers as tf

VOCABULARY = 1000
# The number of layers is that of the request.
BASE = dict(vocab_size=VOCABULARY, hidden_size=768, num_attention_heads=12, intermediate_size=3072)
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

# Width and depth of gte-modernbert-base with fewer layers: global, two local, global.
MODERNBERT = dict(
    vocab_size=VOCABULARY,
    hidden_size=768,
    num_hidden_layers=4,
    num_attention_heads=12,
    intermediate_size=1152,
    **dict.fromkeys(["pad_token_id", "bos_token_id", "cls_token_id"], 0),
    **dict.fromkeys(["eos_token_id", "sep_token_id"], 1),
)
T5 = dict(vocab_size=VOCABULARY, d_model=64, d_kv=24, d_ff=128, num_layers=3, num_heads=4, dropout_rate=0)
# GTE's stretched positions, which its own code computes and Transformers' does not.
NTK = {"type": "ntk", "factor": 2.0}

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
    "modernbert": (lambda: tf.ModernBertModel(tf.ModernBertConfig(**MODERNBERT)), torch.bfloat16, "50GB"),
    "modernbert-bias": (
        lambda: tf.ModernBertForMaskedLM(
            tf.ModernBertConfig(**MODERNBERT, attention_bias=True, mlp_bias=True, norm_bias=True, local_attention=16)
        ),
        torch.float32,
        "50GB",
    ),
    "modernbert-scores": (
        lambda: tf.ModernBertForSequenceClassification(tf.ModernBertConfig(**MODERNBERT, num_labels=1)),
        torch.float32,
        "50GB",
    ),
    "nomic": (
        lambda: tf.NomicBertModel(tf.NomicBertConfig(**SMALL), add_pooling_layer=False),
        torch.float32,
        "50GB",
    ),
    "gte": (lambda: tf.GteModel(tf.GteConfig(**SMALL, pad_token_id=0)), torch.float16, "50GB"),
    "gte-ntk": (lambda: tf.GteModel(tf.GteConfig(**SMALL, pad_token_id=0)), torch.float32, "50GB"),
    "t5": (lambda: tf.T5EncoderModel(tf.T5Config(**T5)), torch.float32, "50GB"),
    "t5-gated": (
        lambda: tf.T5EncoderModel(tf.T5Config(**T5, feed_forward_proj="gated-gelu")),
        torch.bfloat16,
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


def stretch_positions(model, folder):
    """GTE's code with rope_scaling ntk: base x factor, and all frequencies / factor^(2 / size of a head)."""
    size = model.config.hidden_size // model.config.num_attention_heads
    base = model.config.rope_parameters["rope_theta"] * NTK["factor"]
    steps = torch.arange(0, size, 2, dtype=torch.int64).float() / size
    model.rotary_emb.inv_freq = 1.0 / (base**steps) / NTK["factor"] ** (2 / size)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    path.write_text(json.dumps({**config, "rope_theta": rope["rope_theta"], "rope_scaling": NTK}))


def main():
    request = json.load(sys.stdin)
    root = pathlib.Path(request["folder"])
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    torch.manual_seed(17)
    BASE["num_hidden_layers"] = request["layers"]
    short = torch.randint(5, 119, (3, 24))
    # Longer than ModernBERT's window and T5's last bucket.
    long = torch.randint(5, 119, (3, 160))
    result = []
    for name, (make, dtype, shards) in CASES.items():
        model = widen(make())
        folder = root / name
        saved = copy.deepcopy(model).to(dtype)
        saved.save_pretrained(folder, max_shard_size=shards)
        # The weights alone are rounded, not the buffers, such as the frequencies of rotary positions.
        model.load_state_dict(saved.state_dict())
        shutil.copy(request["tokenizer"], folder / "tokenizer.json")
        if name == "gte-ntk":
            stretch_positions(model, folder)
        if name.startswith("qwen3"):
            (folder / "1_Pooling").mkdir()
            (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "lasttoken"}))
        inputs = (short if name.startswith(("bert", "roberta", "xlm", "dpr")) else long).clone()
        mask = torch.ones_like(inputs)
        mask[1, 15:] = 0
        mask[2, 3:] = 0
        inputs[mask == 0] = model.config.pad_token_id or 0
        types = torch.zeros_like(inputs)
        type_count = getattr(model.config, "type_vocab_size", 0)
        if type_count > 1:
            types[:, 7:] = 1
        encoder = model if name.endswith("-scores") else model.question_encoder.bert_model if name == "dpr" else model.base_model
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
                "precisions": ["float32", "int8"] if name.startswith("t5") else ["float32", "float16", "int8"],
            }
        )
    json.dump(result, sys.stdout)


main()
