"""Writes checkpoints with random weights in the widths of known models, with few layers, as folders of sentence-transformers:
random_encoders.py OUT TOKENIZER.json [FAMILY]. Prints a JSON array of {"family", "shape", "folder"}.

The tokenizer is the same for all families, so that they encode the same tokens. With FAMILY only this one is written, with all layers of
its model.
"""

import json
import pathlib
import shutil
import sys

import torch
import transformers as tf

VOCABULARY = 30522
SPECIAL = dict(pad_token_id=0, bos_token_id=101, cls_token_id=101, eos_token_id=102, sep_token_id=102)
BASE = dict(vocab_size=VOCABULARY, hidden_size=768, num_attention_heads=12, intermediate_size=3072)

# family: width, layers written, layers of the model, pooling, model
FAMILIES = {
    "BERT": ("BERT-base", 4, 12, "mean", lambda n: tf.BertModel(tf.BertConfig(**BASE, num_hidden_layers=n), add_pooling_layer=False)),
    "Qwen3": (
        "Qwen3-Embedding-0.6B",
        3,
        28,
        "lasttoken",
        lambda n: tf.Qwen3Model(
            tf.Qwen3Config(
                vocab_size=VOCABULARY,
                hidden_size=1024,
                num_hidden_layers=n,
                num_attention_heads=16,
                num_key_value_heads=8,
                head_dim=128,
                intermediate_size=3072,
                rope_parameters={"rope_type": "default", "rope_theta": 1_000_000},
            )
        ),
    ),
    "ModernBERT": (
        "ModernBERT-base",
        4,
        22,
        "mean",
        lambda n: tf.ModernBertModel(
            tf.ModernBertConfig(
                vocab_size=VOCABULARY,
                hidden_size=768,
                num_hidden_layers=n,
                num_attention_heads=12,
                intermediate_size=1152,
                **SPECIAL,
            )
        ),
    ),
    "T5": (
        "GTR-T5-base",
        4,
        12,
        "mean",
        lambda n: tf.T5EncoderModel(
            tf.T5Config(vocab_size=VOCABULARY, d_model=768, d_kv=64, d_ff=3072, num_layers=n, num_heads=12)
        ),
    ),
    "nomic": (
        "nomic-embed-text-v1.5",
        4,
        12,
        "mean",
        lambda n: tf.NomicBertModel(tf.NomicBertConfig(**BASE, num_hidden_layers=n), add_pooling_layer=False),
    ),
    "GTE": (
        "gte-base-en-v1.5",
        4,
        12,
        "cls",
        lambda n: tf.GteModel(tf.GteConfig(**BASE, num_hidden_layers=n, pad_token_id=0)),
    ),
}
POOLINGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "lasttoken": "pooling_mode_lasttoken"}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


def main(out, tokenizer, only=None):
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    torch.manual_seed(17)
    written = []
    for family, (width, few, whole, pooling, make) in FAMILIES.items():
        if only not in (None, family):
            continue
        layers = few if only is None else whole
        folder = pathlib.Path(out) / family
        model = make(layers)
        model.save_pretrained(folder)
        shutil.copy(tokenizer, folder / "tokenizer.json")
        tokens = dict(pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]")
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, **tokens}
        # Else the tokenizer gives token types, which only BERT takes.
        settings["model_input_names"] = ["input_ids", "attention_mask"]
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        (folder / "modules.json").write_text(json.dumps(MODULES))
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256, "do_lower_case": False}))
        (folder / "1_Pooling").mkdir()
        chosen = {name: name == POOLINGS[pooling] for name in POOLINGS.values()}
        config = {"word_embedding_dimension": 1024 if family == "Qwen3" else 768, **chosen}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
        shape = f"{width}, {layers} of {whole} layers" if layers < whole else f"{width}, {layers} layers"
        written.append({"family": family, "shape": shape, "folder": str(folder)})
    json.dump(written, sys.stdout)


main(*sys.argv[1:4])
