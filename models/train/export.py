"""Writes the trained table as an int8 ONNX model with its tokeniser and configuration."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

EMPTY_TEXT_SHARE = 1e-3  # length of the [CLS] row, relative to the median row


def quantize_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 quantisation: codes int8 [v, d], scales float32 [v]; table ≈ codes * scales[:, None]."""
    scales = (np.abs(table).max(1) / 127).astype(np.float32)
    codes = np.rint(table / np.maximum(scales, 1e-30)[:, None])
    return np.clip(codes, -127, 127).astype(np.int8), scales


def set_special_rows(
    codes: np.ndarray, scales: np.ndarray, zero: frozenset[int], cls: int, direction: np.ndarray
) -> None:
    """Zeroes the rows of special tokens and sets the row of [CLS] to a tiny vector along `direction` [d].

    Every text begins with [CLS]: its row gives an empty text a direction, and
    its effect on other texts is negligible.
    """
    typical = np.median(np.linalg.norm(codes.astype(np.float32), axis=1) * scales)
    ids = sorted(zero)
    codes[ids], scales[ids] = 0, 0
    row_codes, row_scale = quantize_rows(direction[None] / np.linalg.norm(direction) * typical * EMPTY_TEXT_SHARE)
    codes[cls], scales[cls] = row_codes[0], row_scale[0]


def build_graph(codes: np.ndarray, scales: np.ndarray) -> onnx.ModelProto:
    """input_ids, attention_mask int64 [b, s] -> last_hidden_state float32 [b, s, d], zero where masked."""
    shape = ["batch", "sequence"]
    nodes = [
        helper.make_node("Gather", ["codes", "input_ids"], ["row_codes"], axis=0),
        helper.make_node("Gather", ["scales", "input_ids"], ["row_scales"], axis=0),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last_axis"], ["mask_column"]),
        helper.make_node("Mul", ["row_scales", "mask_column"], ["factor"]),
        helper.make_node("Cast", ["row_codes"], ["row_floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["row_floats", "factor"], ["last_hidden_state"]),
    ]
    graph = helper.make_graph(
        nodes,
        "token-average",
        [helper.make_tensor_value_info(n, TensorProto.INT64, shape) for n in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, codes.shape[1]])],
        [
            numpy_helper.from_array(codes, "codes"),
            numpy_helper.from_array(scales[:, None].astype(np.float32), "scales"),
            numpy_helper.from_array(np.array([-1], np.int64), "last_axis"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8, producer_name="trawl")
    onnx.checker.check_model(model)
    return model


def replace_file(path: Path, content: bytes) -> dict[str, object]:
    """Writes a file atomically, by rename. Returns {"path", "bytes", "sha256"}."""
    partial = path.with_name("." + path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
    return {"path": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_model(
    folder: Path, name: str, tokenizer_file: Path, codes: np.ndarray, scales: np.ndarray, source: dict
) -> None:
    """Writes model.onnx, tokenizer.json and trawl-model.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = json.loads(tokenizer_file.read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    tokenizer_text = json.dumps(tokenizer, ensure_ascii=False, indent=2) + "\n"
    files = [
        replace_file(folder / "model.onnx", build_graph(codes, scales).SerializeToString()),
        replace_file(folder / "tokenizer.json", tokenizer_text.encode("utf-8")),
    ]
    manifest = {
        "format": "trawl-model",
        "version": 1,
        "name": name,
        "architecture": "token-average",
        "dimension": int(codes.shape[1]),
        "pooling": "mean",
        "normalize": True,
        "similarity": "inner-product",
        "prefixes": {"query": "", "passage": ""},
        "maxTokens": {"query": 256, "passage": 512},
        "graph": {"path": "model.onnx", "precision": "int8", "output": "last_hidden_state"},
        "tokenizer": {"path": "tokenizer.json"},
        "batchInvariant": True,
        "source": source,
        "license": "Apache-2.0",
        "files": files,
    }
    replace_file(folder / "trawl-model.json", (json.dumps(manifest, indent=2) + "\n").encode("utf-8"))
