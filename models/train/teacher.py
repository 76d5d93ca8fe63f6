"""The teacher: a BERT-family sentence-transformers folder, run with onnxruntime on CPU.

Converts the checkpoint (`config.json`, `model.safetensors`, `tokenizer.json`) to
an ONNX graph in memory, with onnxruntime's fused BERT operators, so training
needs no deep-learning framework. The teacher must use mean pooling.
"""

from __future__ import annotations

import json
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

MS = "com.microsoft"


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Reads the float32 tensors of a safetensors file, name -> array."""
    raw = path.read_bytes()
    (header_len,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + header_len])
    base = 8 + header_len
    tensors = {}
    for name, spec in header.items():
        if name == "__metadata__" or spec["dtype"] != "F32":
            continue
        begin, end = spec["data_offsets"]
        tensors[name] = np.frombuffer(raw[base + begin : base + end], "<f4").reshape(spec["shape"])
    return tensors


def build_bert_graph(weights: dict[str, np.ndarray], config: dict) -> bytes:
    """Serialised ONNX graph: input_ids, mask int32 [b, s] -> hidden float32 [b, s, d]."""
    nodes: list[onnx.NodeProto] = []
    consts: list[onnx.TensorProto] = []

    def const(name: str, value: np.ndarray) -> str:
        consts.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
        return name

    def w(name: str) -> str:
        return const(name, weights[name])

    def wt(name: str) -> str:  # torch Linear stores [out, in]; MatMul wants [in, out]
        return const(name, weights[name].T)

    eps = config["layer_norm_eps"]
    zero_types = weights["embeddings.token_type_embeddings.weight"][:1]
    nodes.append(
        helper.make_node(
            "EmbedLayerNormalization",
            [
                "input_ids",
                "",
                w("embeddings.word_embeddings.weight"),
                # every token has type 0, so add its row to the positions
                const("positions", weights["embeddings.position_embeddings.weight"] + zero_types),
                "",
                w("embeddings.LayerNorm.weight"),
                w("embeddings.LayerNorm.bias"),
            ],
            ["x0", "unused_mask_index"],
            domain=MS,
            epsilon=eps,
        )
    )
    x = "x0"
    for i in range(config["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        a = p + "attention."
        qkv = [a + f"self.{n}." for n in ("query", "key", "value")]
        qkv_w = const(p + "qkv.w", np.concatenate([weights[n + "weight"].T for n in qkv], 1))
        qkv_b = const(p + "qkv.b", np.concatenate([weights[n + "bias"] for n in qkv]))
        nodes += [
            helper.make_node(
                "Attention", [x, qkv_w, qkv_b, "mask"], [p + "att"],
                domain=MS, num_heads=config["num_attention_heads"],
            ),
            helper.make_node("MatMul", [p + "att", wt(a + "output.dense.weight")], [p + "proj"]),
            helper.make_node(
                "SkipLayerNormalization",
                [p + "proj", x, w(a + "output.LayerNorm.weight"), w(a + "output.LayerNorm.bias"),
                 w(a + "output.dense.bias")],
                [p + "mid"], domain=MS, epsilon=eps,
            ),
            helper.make_node("MatMul", [p + "mid", wt(p + "intermediate.dense.weight")], [p + "up"]),
            helper.make_node("BiasGelu", [p + "up", w(p + "intermediate.dense.bias")], [p + "gelu"], domain=MS),
            helper.make_node("MatMul", [p + "gelu", wt(p + "output.dense.weight")], [p + "down"]),
            helper.make_node(
                "SkipLayerNormalization",
                [p + "down", p + "mid", w(p + "output.LayerNorm.weight"), w(p + "output.LayerNorm.bias"),
                 w(p + "output.dense.bias")],
                [p + "out"], domain=MS, epsilon=eps,
            ),
        ]
        x = p + "out"
    nodes.append(helper.make_node("Identity", [x], ["hidden"]))
    shape = ["batch", "sequence"]
    graph = helper.make_graph(
        nodes,
        "bert",
        [helper.make_tensor_value_info(n, TensorProto.INT32, shape) for n in ("input_ids", "mask")],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [*shape, config["hidden_size"]])],
        consts,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokeniser with truncation and padding switched off."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class Teacher:
    """Mean-pooled, L2-normalised sentence embeddings of a BERT-family checkpoint."""

    def __init__(self, folder: Path, max_tokens: int = 256, threads: int = 2) -> None:
        config = json.loads((folder / "config.json").read_text())
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
        if not pooling.get("pooling_mode_mean_tokens"):
            raise ValueError(f"{folder}: the teacher must use mean pooling")
        self.tokenizer = load_tokenizer(folder / "tokenizer.json")
        self.dimension: int = config["hidden_size"]
        self.max_tokens = max_tokens
        self.threads = threads
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # batches run in parallel instead
        graph = build_bert_graph(read_safetensors(folder / "model.safetensors"), config)
        self.session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def encode_ids(self, ids: list[list[int]]) -> np.ndarray:
        """Embeds one batch of token-id lists. Returns float32 [len(ids), dimension], unit rows."""
        width = max(len(x) for x in ids)
        tokens = np.zeros((len(ids), width), np.int32)
        mask = np.zeros((len(ids), width), np.int32)
        for row, x in enumerate(ids):
            tokens[row, : len(x)] = x
            mask[row, : len(x)] = 1
        (hidden,) = self.session.run(["hidden"], {"input_ids": tokens, "mask": mask})
        weights = mask[:, :, None].astype(np.float32)
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def encode(self, texts: list[str], label: str = "", batch_tokens: int = 2048) -> np.ndarray:
        """Embeds texts, batched by similar length. Returns float32 [len(texts), dimension]."""
        ids: list[list[int]] = []
        for start in range(0, len(texts), 4096):
            for enc in self.tokenizer.encode_batch(texts[start : start + 4096]):
                x = enc.ids
                if len(x) > self.max_tokens:  # keep the closing [SEP]
                    x = x[: self.max_tokens - 1] + x[-1:]
                ids.append(x)
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        batches: list[list[int]] = [[]]
        for i in order:
            if batches[-1] and (len(batches[-1]) + 1) * len(ids[batches[-1][0]]) > batch_tokens:
                batches.append([])
            batches[-1].append(i)
        out = np.empty((len(ids), self.dimension), np.float32)
        started = time.time()

        def work(batch: list[int]) -> None:
            out[batch] = self.encode_ids([ids[i] for i in batch])

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, batches))
        if label:
            seconds = time.time() - started
            print(f"teacher: {label}: {len(ids)} texts, {len(ids) / seconds:.0f}/s, {seconds:.0f} s", flush=True)
        return out
